"""`azr-population recipe`: lists the recipes, or plays what is missing of one and draws it.

A run is a process in a session of its own, so that Ctrl-C reaches it through us alone: the first
lets every run finish its step and save, the second ends them at once. The same command continues.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import rich_click as click

from azr_population.console.heartbeat import stop_requests
from azr_population.console.output import say
from azr_population.errors import UserError
from azr_population.experiments.plan import (
    PlannedRun,
    RecipePlan,
    check_runs,
    check_saving,
    save_runs,
)
from azr_population.experiments.recipes import read_arms, read_recipe, recipe_names

CLI = (sys.executable, "-m", "azr_population.cli")
_LONG = 300.0
"""Seconds of one core that are played without a question."""


def run_recipe(name: str, dry_run: bool, yes: bool, jobs: int, **options: Any) -> int:
    """Plays and draws the recipe; `options` are those of `RecipePlan`. Returns the exit code: 0, or
    128 + the signal that stopped the runs."""
    arms = read_arms()
    recipe = read_recipe(name, arms)
    plan = RecipePlan(recipe, arms, **options)
    if plan.save_results:
        check_saving(plan)
    check_runs(plan.runs)
    if plan.from_results:
        if not any(run.started for run in plan.runs):
            raise UserError(
                f"no run of {recipe.name} is in {plan.out} or committed; leave out --from-results "
                f"to play them ({_estimate(plan.seconds_left)} of one core)"
            )
    else:
        say(
            f"{recipe.name}: {len(plan.runs)} runs, {len(plan.runs) - len(plan.missing)} "
            f"finished; about {_estimate(plan.seconds_left)} of one core to go"
        )
        if dry_run:
            for run in plan.missing:
                say(f"would play {run.name} from step {run.done} to {run.steps} in {run.path}")
            say(f"results would be in {plan.results}; nothing was started")
            return 0
        if not yes:
            _confirm(recipe.name, plan.seconds_left)
        if code := play(plan.missing, jobs):
            say("the same command continues")
            return code
    from azr_population.experiments.results import draw

    if plan.save_results:
        save_runs(plan)
    say(f"results: {draw(plan)}")
    return 0


def _confirm(name: str, seconds: float) -> None:
    """Asks before the recipe plays for more than some minutes. Raises UserError: the answer is no,
    or there is no terminal to ask in."""
    if seconds <= _LONG:
        return
    question = f"{name} plays for about {_estimate(seconds)} of one core"
    if not (sys.stdin and sys.stdin.isatty()):
        raise UserError(f"{question}; add --yes to play it, or --dry-run to see what it plays")
    if not click.confirm(f"{question}. Play it?"):
        raise UserError(f"{name} was not started; --from-results draws the committed runs")


def print_list() -> None:
    """All recipes as a table: the question or the paper's claim, and how many of the planned runs
    are committed."""
    from rich.console import Console
    from rich.table import Table

    arms = read_arms()
    heads = ("recipe", "paper", "question or claim", "committed", "one core")
    table = Table(*heads, box=None, pad_edge=False)
    for name in recipe_names():
        recipe = read_recipe(name, arms)
        plan = RecipePlan(recipe, arms, out=Path(os.devnull))
        stored = [plan.committed / run.arm_name / run.path.name for run in plan.runs]
        count = sum((path / "config.yaml").is_file() for path in stored)
        claim = " ".join(recipe.claim.split()) or recipe.title
        committed = f"{count} of {len(stored)} runs"
        table.add_row(name, recipe.figure, claim, committed, _estimate(plan.seconds_left))
    console = Console(width=None if sys.stdout.isatty() else 130)
    console.print(table)
    console.print("recipes share runs of the same arm; --from-results draws what is committed")


def _estimate(seconds: float) -> str:
    """Seconds as people say them: `40 min`, `2.5 h`."""
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def play(runs: Sequence[PlannedRun], jobs: int) -> int:
    """Starts or resumes each of `runs`, `jobs` at a time; returns 0, or 128 + the signal that
    stopped it. Raises UserError: a run failed. Those beside it finish; no other one is started."""
    children: list[subprocess.Popen[bytes]] = []
    failures: list[str] = []
    received: list[int] = []

    def pass_on() -> None:
        for child in children:
            child.send_signal(signal.SIGINT)  # does nothing to one that has ended
        if len(received) == 1:
            say("stopping after the steps at hand; once more to stop at once")

    def play_one(number: int, run: PlannedRun) -> None:
        if received or failures:
            return
        say(f"[{number}/{len(runs)}] {run.name}: step {run.done} to {run.steps}, in {run.path}")
        child = _start(run)
        children.append(child)
        if received:  # while it was started
            child.send_signal(signal.SIGINT)
        code = child.wait()
        if code and not received:
            lines = _log(run).read_text(encoding="utf-8", errors="replace").split("\n")
            last = next((line.strip() for line in lines[::-1] if line.strip()), "no output")
            failures.append(f"{run.name} failed (exit code {code}): {last}; all is in {_log(run)}")
        else:
            left = _estimate(sum(other.seconds_left for other in runs) / jobs)
            say(f"{run.name}: at step {run.done} of {run.steps}; about {left} left")

    with stop_requests(received, pass_on), ThreadPoolExecutor(jobs) as pool:
        list(pool.map(play_one, range(1, len(runs) + 1), runs))
    if failures and not received:
        raise UserError("; ".join(failures))
    return 128 + received[0] if received else 0


def _log(run: PlannedRun) -> Path:
    return run.path.with_name(f"{run.path.name}.log")


def _start(run: PlannedRun) -> subprocess.Popen[bytes]:
    run.path.parent.mkdir(parents=True, exist_ok=True)
    # CI=1 asks for plain lines.
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "CI": "1", "PYTHONUNBUFFERED": "1"}
    with _log(run).open("ab") as log:
        return subprocess.Popen(
            run_command(run),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def run_command(run: PlannedRun) -> list[str]:
    """The command line that starts a run, or continues it."""
    if run.started:
        return [*CLI, "resume", str(run.path), f"run.steps={run.steps}"]
    typed = [*run.overrides, f"seed={run.seed}", f"run.dir={run.path}"]
    return [*CLI, "train", *typed, f"run.steps={run.steps}"]
