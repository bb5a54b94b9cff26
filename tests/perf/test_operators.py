"""What a child asks of a GPU, counted on a pretended one."""

import json
import sys

import operators


def test_a_child_waits_for_the_gpu_a_few_times_and_is_the_cpus(monkeypatch):
    monkeypatch.setattr(operators, "SHAPES", {"q_proj": (64, 48), "k_proj": (32, 48)})
    few, many = (operators.count(layers, 4) for layers in (2, 6))
    for one, other in zip(few, many, strict=True):
        assert 1 <= one["waits"] == other["waits"] <= 4, one
        assert 0 < one["launches"] < other["launches"]
    # The others' noise is drawn on the device.
    assert [row["code"] for row in many if not row["equal"]] == ["M2", "M4"]


def test_the_counts_are_written_where_json_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(operators, "SHAPES", {"q_proj": (64, 48)})
    path, words = tmp_path / "counts.json", ["--layers", "1", "--rank", "4", "--count"]
    monkeypatch.setattr(sys, "argv", ["operators.py", "--json", str(path), *words])
    operators.main()
    result = json.loads(path.read_text())
    assert result["command"] == "python perf/operators.py --layers 1 --rank 4 --count"
    assert all(row["launches"] > 0 for row in result["rows"])
