"""Benchmarks for the members of a recipe's runs: the `azr-population evaluate` command for them."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from azr_population.errors import UserError
from azr_population.experiments.recipe import Recipe
from azr_population.experiments.runs import PlannedRun

DATA = "BENCHMARK_DATA"
"""Environment variable: the folder of the benchmarks' files."""


def evaluation(recipe: Recipe, scale: str, runs: Sequence[PlannedRun], out: Path) -> list[str]:
    """What `azr-population` is given for the table of these runs; [] where the recipe has none."""
    options = recipe.evaluation.get(scale)
    if not options:
        return []
    folders = [str(run.path) for run in runs]
    return ["evaluate", *folders, *shlex.split(options), "--out", str(out / "benchmarks.md")]


def evaluate(
    recipe: Recipe,
    scale: str,
    planned: Sequence[PlannedRun],
    out: Path,
    say: Callable[[str], None],
) -> None:
    """Makes the benchmark table of the runs whose members are there, beside the other results.

    Without `DATA` it says how. Raises UserError where the evaluation fails.
    """
    runs = [run for run in planned if run.finished and not run.is_kept]
    typed = evaluation(recipe, scale, runs, out)
    if not typed or not runs:
        return
    data = os.environ.get(DATA)
    if not data:
        say(f"no table of benchmarks: {DATA} names no folder; see docs/evaluation.md")
        return
    command = [sys.executable, "-m", "azr_population.cli", *typed, "--data", data]
    if subprocess.run(command, check=False).returncode:
        raise UserError(f"the evaluation of {recipe.name} failed; the same command goes on with it")


def shell_line(recipe: Recipe, scale: str, planned: Sequence[PlannedRun], out: Path) -> str:
    """The same as a line of a script; '' where the recipe has none."""
    typed = evaluation(recipe, scale, planned, out)
    if not typed:
        return ""
    data = f'--data "${{{DATA}:?name the folder of the benchmarks}}"'
    return f"azr-population {shlex.join(typed)} {data}"
