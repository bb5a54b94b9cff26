"""`azr-population recipe`: lists the recipes, or plays what is missing of one and draws it.

A run is a process in a session of its own, so that Ctrl-C reaches it through us alone: the first
lets every run finish its step and save, the second ends them at once. Either way it can be resumed.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import rich_click as click

from azr_population.analysis.recipe_plan import (
    PlannedRun,
    RecipeOptions,
    RecipePlan,
    azr_script,
    check_runs,
    save_results,
)
from azr_population.analysis.recipes import (
    Arms,
    Recipe,
    read_arms,
    read_recipe,
    recipe_names,
    recipes_folder,
)
from azr_population.errors import UserError
from azr_population.pages.console.heartbeat import stop_requests

CLI = (sys.executable, "-m", "azr_population.cli")
_LONG = 300.0
"""Seconds of one core that are played without a question."""


def run_recipe(options: RecipeOptions) -> int:
    """Returns the exit code: 0, or 128 + the signal that stopped the runs."""
    arms = read_arms()
    recipe = read_recipe(options.name, arms)
    if options.scale not in recipe.scales:
        raise UserError(f"{recipe.name} has no {options.scale} scale")
    if recipe.own_runs and options.jobs > 1:
        raise UserError(f"{recipe.name} measures time, so its runs go one by one: --jobs 1")
    if (
        options.save_results
        and not (recipes_folder().resolve().parent / "pyproject.toml").is_file()
    ):
        raise UserError("--save-results writes into a checkout, and this is none; leave it out")
    plan = RecipePlan(recipe, arms, options)
    if recipe.scripts:
        _run_scripts(plan)
        return 0
    if options.plot_only and not any(run.started for run in plan.runs):
        raise UserError(
            f"there is no run of {recipe.name} in {plan.out}; leave out --plot-only to play them, "
            "or take the committed results by --from-results"
        )
    if not options.plot_only:
        code = (_write_script if plan.in_azr else _play_missing)(plan)
        if code is not None:
            return code
    from azr_population.analysis.recipe_results import draw

    if options.save_results and not recipe.own_runs:
        save_results(plan)
    say(f"results: {draw(plan)}")
    return 0


def _play_missing(plan: RecipePlan) -> int | None:
    """Plays what is missing; an exit code where that was stopped, or only printed."""
    options, recipe, missing = plan.options, plan.recipe, plan.missing
    check_runs(plan.runs, options.resume)
    seconds = sum(run.seconds_left for run in missing)
    if options.from_results and missing:
        names = ", ".join(run.name for run in missing[:4]) + ", ..." * (len(missing) > 4)
        raise UserError(
            f"{len(missing)} runs of {recipe.name} are not among the committed results ({names}); "
            f"leave out --from-results to play them ({estimate(seconds)} of one core), or draw "
            "what there is by --plot-only"
        )
    stored = sum(run.directory.results_only for run in plan.runs)
    say(
        f"{recipe.name}: {len(plan.runs)} runs, {len(plan.runs) - len(missing)} finished, {stored} "
        f"of them committed; about {estimate(seconds)} of one core to go"
    )
    if options.dry_run:
        for run in missing:
            say(f"would play {run.name} to step {run.steps} in {run.path}")
        say(f"results would be in {plan.results}; nothing was started")
        return 0
    confirm(recipe.name, seconds, options)
    if code := play(missing, options.jobs):
        say("continue with the same command and --resume --yes")
        return code
    for run in plan.runs if recipe.crossplay else ():
        if not run.directory.results_only and not (run.path / "crossplay.json").is_file():
            say(f"{run.name}: cross-play of the snapshots of every {recipe.crossplay} steps")
            call([*CLI, "crossplay", str(run.path), "--every", str(recipe.crossplay)])
    return None


def _write_script(plan: RecipePlan) -> int | None:
    """Writes and prints AZR's commands for what is missing; None where nothing is."""
    count = f"{len(plan.missing)} of {len(plan.runs)} runs are missing in {plan.out}"
    if plan.options.dry_run:
        say(f"{count}; nothing written")
        return 0
    if not plan.missing:
        return None
    path, text = plan.out / f"{plan.recipe.name}.sh", azr_script(plan)
    plan.out.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(text, end="")
    say(
        f"{count}; nothing was run, because 7B needs an AZR checkout and GPUs: "
        f"AZR_HOME=... bash {path}"
    )
    return 0


def _run_scripts(plan: RecipePlan) -> None:
    """The command lines of a recipe with programs of its own; the last one draws."""
    options, recipe = plan.options, plan.recipe
    results = recipe.folder / "results" if options.from_results else plan.results
    only_drawn = options.from_results or options.plot_only
    lines = recipe.scripts[-1:] if only_drawn else recipe.scripts
    if options.dry_run:
        for line in lines:
            say(f"would run {line.format(results=results)}")
        say(f"about {recipe.minutes:.0f} min; nothing was started")
        return
    if not only_drawn:
        confirm(recipe.name, 60.0 * recipe.minutes, options)
    results.mkdir(parents=True, exist_ok=True)
    for line in lines:
        script, *typed = [part.format(results=results.absolute()) for part in shlex.split(line)]
        call([sys.executable, str(recipe.folder / script), *typed])
    say(f"results: {results}")


def confirm(name: str, seconds: float, options: RecipeOptions) -> None:
    """Asks before the recipe plays for more than some minutes. Raises UserError: the answer is no,
    or there is no terminal to ask in and `--yes` is not given."""
    if seconds <= _LONG or options.yes:
        return
    question = f"{name} plays for about {estimate(seconds)} of one core"
    if not sys.stdin.isatty():
        raise UserError(f"{question}; add --yes to play it, or --dry-run to see what it plays")
    if not click.confirm(f"{question}. Play it?"):
        raise UserError(f"{name} was not started; --from-results draws the committed runs")


def print_list() -> None:
    """All recipes as a table."""
    from rich.console import Console
    from rich.table import Table

    arms = read_arms()
    table = Table(box=None, pad_edge=False)
    for heading in ("recipe", "paper", "arms", "one core, nano scale"):
        table.add_column(heading, overflow="fold")
    for name in recipe_names():
        recipe = read_recipe(name, arms)
        table.add_row(name, recipe.figure, " ".join(recipe.arms) or "-", recipe_time(recipe, arms))
    console = Console()
    if not console.is_terminal:
        console.width = 110
    console.print(table)
    console.print("runs are shared: an arm that one recipe has played is there for all others")


def recipe_time(recipe: Recipe, arms: Arms) -> str:
    """How long the recipe takes from nothing."""
    if "nano" not in recipe.scales:
        return "-"
    plan = RecipePlan(recipe, arms, RecipeOptions(recipe.name, out=Path(os.devnull)))
    return estimate(60.0 * recipe.minutes + sum(run.seconds_left for run in plan.runs))


def estimate(seconds: float) -> str:
    """Seconds as people say them: `40 min`, `2.5 h`."""
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def call(typed: Sequence[str]) -> None:
    """Runs a command on one thread. Raises UserError: it fails."""
    code = subprocess.run(typed, env={"OMP_NUM_THREADS": "1", **os.environ}, check=False).returncode
    if code:
        raise UserError(f"{shlex.join(typed)} failed (exit code {code})")


def play(runs: Sequence[PlannedRun], jobs: int) -> int:
    """Starts or resumes each of `runs`, `jobs` at a time; returns 0, or 128 + the signal that
    stopped it. Raises UserError: a run failed. Those beside it finish; no other one is started."""
    waiting = list(runs)
    playing: dict[subprocess.Popen[bytes], PlannedRun] = {}
    failures: list[str] = []
    received: list[int] = []

    def pass_on() -> None:
        for child in [child for child in playing if child.poll() is None]:
            child.send_signal(signal.SIGINT)
        if len(received) == 1:
            say("stopping after the steps at hand; once more to stop at once")

    with stop_requests(received, pass_on):
        while playing or (waiting and not received and not failures):
            while waiting and len(playing) < jobs and not received and not failures:
                run = waiting.pop(0)
                place = f"[{len(runs) - len(waiting)}/{len(runs)}]"
                say(f"{place} {run.name}: step {run.done} to {run.steps}, in {run.path}")
                playing[_start(run)] = run
            time.sleep(0.2)
            for child in [child for child in playing if child.poll() is not None]:
                run = playing.pop(child)
                if child.returncode and not received:
                    lines = _log(run).read_text(encoding="utf-8", errors="replace").split("\n")
                    last = next((line.strip() for line in lines[::-1] if line.strip()), "no output")
                    code = f"exit code {child.returncode}"
                    failures.append(f"{run.name} failed ({code}): {last}; all is in {_log(run)}")
                    continue
                left = sum(run.seconds_left for run in (*playing.values(), *waiting)) / jobs
                say(f"{run.name}: at step {run.done} of {run.steps}; about {estimate(left)} left")
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


def say(line: str) -> None:
    """Progress goes to standard error: what is asked for (tables, commands) can be piped."""
    print(line, file=sys.stderr, flush=True)
