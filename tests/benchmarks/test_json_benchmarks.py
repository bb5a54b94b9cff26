"""The benchmarks that write JSON, in a shape that a CPU runs in seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "benchmarks"


def result(tmp_path: Path, script: str, *words: str) -> dict[str, Any]:
    """What the script wrote."""
    path = tmp_path / "result.json"
    command = [sys.executable, str(FOLDER / script), *words, "--json", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return json.loads(path.read_text())


def test_rollouts_are_compared_in_one_run(tmp_path: Path) -> None:
    words = "--shape nano --cases 4x16x8 --members 1 2 --rounds 1"
    told = result(tmp_path, "rollouts.py", *words.split())
    assert [(row["case"], row["members"]) for row in told["rows"]] == [
        ("4 x (16 + 8)", 1),
        ("4 x (16 + 8)", 2),
    ]
    for row in told["rows"]:
        assert {"torch", "generate", "peft"} <= row["tokens_per_second"].keys()
        assert all(speed > 0 for speed in row["tokens_per_second"].values())
        assert row["ratio_to_torch"]["torch"] == 1
    assert (told["push_seconds"] is None) == (told["vllm"] is False)


def test_shared_prompts_are_timed_both_ways(tmp_path: Path) -> None:
    words = "--shape nano --prompts 3 --prompt 20 --tokens 4 --rounds 2"
    (told,) = result(tmp_path, "shared_prompts.py", *words.split())
    assert all(0 < told[what]["ratio"] < 5 for what in ("sampling", "update"))
    assert all(len(told[what]["ratios"]) == 2 for what in ("sampling", "update"))


def test_the_gpus_benchmark_runs_in_a_small_shape_on_a_cpu(tmp_path: Path) -> None:
    words = "--shape small --device cpu --rows 2 --prompt 12 --tokens 4 --rank 2 --repeats 1"
    told = result(tmp_path, "gpu.py", *words.split(), "--longest", "96", "--prime", "80")
    assert told["device"] == "cpu" and len(told["operators"]) >= 8
    assert {"base", "1 member", "8 members"} == told["decoding"].keys()
    assert all(each["tokens_per_second"] > 0 for each in told["decoding"].values())
    assert told["update"]["seconds"] > 0 and told["steps"]["ratio"] > 0
    assert told["longest"]["tokens"] == 96 and told["longest"]["seconds to update"] > 0
    assert all(told["prime"][f"{n} members"]["tokens_per_second"] > 0 for n in (1, 8))
    # The canary: the sampler serves what the learner holds, after an update too.
    assert len(told["cycle"]["canary"]) == 9 and max(told["cycle"]["canary"].values()) < 0.01
    assert told["memory_gb"]["base"]["measured"] is None
    assert told["memory_gb"]["members in float32"]["by arithmetic"] > 0


def test_a_section_that_fails_or_comes_too_late_says_so_and_the_rest_goes_on(
    tmp_path: Path,
) -> None:
    words = "--shape small --device cpu --rows 2 --prompt 12 --tokens 4 --rank 2 --repeats 1"
    # A row without an answer cannot be learned from.
    failing = result(tmp_path, "gpu.py", *words.split(), "--longest", "96", "--prime", "-1")
    assert "failed" in failing["prime"] and failing["cycle"]["seconds"]
    late = result(tmp_path, "gpu.py", *words.split(), "--longest", "96", "--minutes", "-1")
    assert "left out" in late["decoding"] and "left out" in late["cycle"]


def test_a_steps_scale_is_worked_out_without_a_gpu(tmp_path: Path) -> None:
    told = result(tmp_path, "scale.py", "--count")
    for tail in told["steps"].values():
        parts = tail["seconds"]
        # Eight times the rows: eight times the update, and less where a step waits for one answer.
        assert 6 < parts["4T+4S"]["update"] / parts["single"]["update"] < 10
        assert 1 < tail["to single"] < 8
    assert told["update"]["estimated"] == pytest.approx(told["update"]["counted"], rel=0.12)
