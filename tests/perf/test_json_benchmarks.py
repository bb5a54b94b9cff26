"""The benchmarks that write JSON, in a shape that a CPU runs in seconds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "perf"


def result(tmp_path, script, *words):
    """What the script wrote."""
    path = tmp_path / "result.json"
    command = [sys.executable, str(FOLDER / script), *words, "--json", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return json.loads(path.read_text())


def test_rollouts_are_compared_in_one_run(tmp_path):
    words = "--shape nano --cases 4x16x8 --members 1 2 --rounds 1"
    figures = result(tmp_path, "rollouts.py", *words.split())
    assert [(row["case"], row["members"]) for row in figures["rows"]] == [
        ("4 x (16 + 8)", 1),
        ("4 x (16 + 8)", 2),
    ]
    for row in figures["rows"]:
        assert {"torch", "generate", "peft"} <= row["tokens_per_second"].keys()
        assert all(speed > 0 for speed in row["tokens_per_second"].values())
        assert row["ratio_to_torch"]["torch"] == 1
    assert (figures["push_seconds"] is None) == (figures["vllm"] is None)


def gpu(tmp_path, *words):
    """The figures of `gpu.py` by group and name."""
    command = [sys.executable, str(FOLDER / "gpu.py"), "--device", "cpu", "--shape", "small"]
    subprocess.run([*command, "--out", str(tmp_path), *words], check=True, capture_output=True)
    lines = (tmp_path / "figures.jsonl").read_text().splitlines()
    return {(each["group"], each["name"]): each["figure"] for each in map(json.loads, lines)}


def test_the_gpus_benchmark_plays_whole_in_a_small_shape_on_a_cpu(tmp_path):
    figures = gpu(tmp_path, "--seconds", "800")
    for group in ("graphs", "steps", "operators", "long", "run", "seven", "nf4", "tests"):
        assert figures["all", group]["ended"] == "in time", group
    failed = {key for key, figure in figures.items() if str(figure).startswith("failed")}
    assert failed == set()
    assert figures["run", "train"]["code"] == figures["run", "resume"]["code"] == 0
    for arm in ("graphs", "eager"):
        assert figures["steps", arm]["code"] == 0
    assert set(figures["graphs", "completions with equal tokens, by rows"].values()) == {1.0}
    assert figures["seven", "decoding, 8 members, several lengths"]["tokens/s"] > 0
    assert figures["seven", "update"]["s of eight"] > 0
    assert figures["seven", "memory, update"]["dry run GB"] > 0
    assert figures["tests", "exit code"] == 0


def test_a_group_that_comes_too_late_costs_itself_only(tmp_path):
    figures = gpu(tmp_path, "--groups", "seven,operators", "--seconds", "6")
    assert "stopped" in figures["all", "seven"]["ended"]
    assert "left out" in figures["all", "operators"]
