"""Tokens a second inside AZR are counted over all steps of both sides."""

import subprocess
import sys
from pathlib import Path

from azr_population.runs import RunDirectory

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "azr_step.py"


def run(path, *steps):
    """A run with these tokens by role and seconds a step."""
    directory = RunDirectory(path)
    directory.create("seed: 1\n", {})
    for number, (tokens, seconds) in enumerate(steps, 1):
        metrics = {f"{role}/generated_tokens": count for role, count in tokens.items()}
        directory.append("metrics", [{"step": number, **metrics, "time/step": seconds}])
    return str(path)


def test_the_ratio_is_of_all_tokens_to_all_seconds(tmp_path):
    together = run(tmp_path / "4t4s", ({"teacher": 60, "student": 20}, 4), ({"teacher": 40}, 2))
    alone = [run(tmp_path / "a", ({"agent": 10}, 1)), run(tmp_path / "b", ({"agent": 20}, 5))]
    command = [sys.executable, str(SCRIPT), together, *alone]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert output.splitlines() == [
        "population: 20.0 tokens a second (80 in 4.0 s, 40 in 2.0 s)",
        "single: 5.0 tokens a second (10 in 1.0 s, 20 in 5.0 s)",
        "population / single: 4.00",
    ]
