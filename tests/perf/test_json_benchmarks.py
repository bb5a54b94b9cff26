"""The benchmarks that write JSON, in a shape that a CPU runs in seconds."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from azr_population.versions import installed

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
    assert (figures["push_seconds"] is None) == (figures["vllm"] is False)


def gpu(tmp_path, *words):
    small = "--shape small --device cpu --rows 16 --prompt 12 --tokens 4 --rank 2 --repeats 1"
    return result(tmp_path, "gpu.py", *small.split(), "--longest", "96", *words)


@pytest.mark.timeout(900)
def test_the_gpus_benchmark_runs_in_a_small_shape_on_a_cpu(tmp_path):
    figures = gpu(tmp_path, "--parts", "bank,decoding_7b,step,cycle,memory,nf4,calls")
    parts = {name: part for name, part in figures.items() if isinstance(part, dict)}
    parts.pop("arguments")
    if not installed("bitsandbytes"):
        assert "failed" in parts.pop("nf4")
    assert len(parts) >= 6
    assert not any({"failed", "stopped", "left out"} & part.keys() for part in parts.values())
    decoding = figures["decoding_7b"]
    speeds = [decoding[f"torch, {members} members"] for members in (0, 1, 2, 4, 8)]
    assert all(each["tokens_per_second"] > 0 for each in speeds)
    assert decoding["torch, 8 members to 1"]["ratio"] > 0
    assert len(figures["bank"]["operators"]) >= 8
    assert figures["step"]["4T+4S to single"]["ratio"] > 0
    # The canary: the sampler serves what the learner holds, after an update too.
    canary = figures["cycle"]["resident"]["canary"]
    assert len(canary) == 9 and max(canary.values()) < 0.01
    assert figures["memory"]["members, float32"]["by arithmetic"] > 0
    assert figures["calls"]["two to nine"]["equal rows"] == 1.0


def test_a_part_that_fails_or_comes_too_late_keeps_what_it_had_and_the_rest_goes_on(tmp_path):
    # No row has fewer tokens than none.
    figures = gpu(tmp_path, "--parts", "memory,bank", "--longest", "-5")
    assert "failed" in figures["memory"] and figures["memory"]["base"]["by arithmetic"] > 0
    assert figures["bank"]["operators"]
    late = gpu(tmp_path, "--parts", "bank,step", "--minutes", "0.01")
    assert "stopped" in late["bank"] and "left out" in late["step"]
