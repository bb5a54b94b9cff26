"""Draws a recipe: `summary.md`, CSV files, SVG figures and what made them, in one folder."""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.experiments.arms import Arms
from azr_population.experiments.budgets import budgets_tables
from azr_population.experiments.primary_tables import primary_tables
from azr_population.experiments.recipe import Recipe
from azr_population.experiments.results_tables import (
    Runs,
    baseline_of,
    curves_csv,
    figure_curves,
    make_table,
    table_csv,
    table_markdown,
)
from azr_population.experiments.runs import (
    PlannedRun,
    keys_without_value,
    other_values,
    runs_there,
)
from azr_population.experiments.wallclock import ratio_estimates, wallclock_tables
from azr_population.files import write_atomically
from azr_population.runs import RunDirectory
from azr_population.runs.diagnostics import last_step
from azr_population.versions import environment

_EXTREMES = ("exam_best", "exam_worst")
_LUCK = (
    "Of several members with one and the same skill the best scores above, and the weakest below, "
    "a member alone, by luck in the exam. So a best member above the single agent, or a weakest "
    "one below it, is no evidence; the means are comparable, and a weakest member above it is "
    "evidence."
)


def draw(
    recipe: Recipe, arms: Arms, planned: Sequence[PlannedRun], steps: int, scale: str, folder: Path
) -> Path:
    """Writes the recipe's results into `folder` and returns its `summary.md`.

    Runs that have no records yet, or are not of their arm, are left out; the summary says which.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--results {folder} cannot be made: {error.strerror}") from error
    mismatched = _mismatched(planned) if scale == "nano" else {}
    runs = runs_there([run for run in planned if run.name not in mismatched])
    if recipe.summary == "wallclock":
        text, files = _wallclock(recipe, runs, steps, folder)
    else:
        # At nano scale an arm may be played for several times the steps of the others.
        lengths = {
            run.arm.name: steps * (run.arm.times if scale == "nano" else 1) for run in planned
        }
        text, files = _curves(recipe, runs, lengths, folder)
        budget, files["budget.csv"] = budgets_tables(runs)
        text += f"\n\nWhat a member had per step (whole runs, means over seeds):\n\n{budget}"
    for name, content in files.items():
        write_atomically(folder / name, content)
    pins = versions(recipe, arms, planned, steps, scale)
    write_atomically(folder / "versions.json", json.dumps(pins, indent=1) + "\n")
    summary = folder / "summary.md"
    heading = [
        f"# {recipe.title} ({recipe.figure}), {scale} scale",
        f"Made by `{command()}`.",
        _scope_note(planned, steps, scale, mismatched),
        *([f"The paper: {recipe.shows}"] if recipe.shows else []),
    ]
    write_atomically(summary, "\n\n".join([*heading, text]) + "\n")
    return summary


def completed(runs: Runs, lengths: Mapping[str, int]) -> Runs:
    """The runs that have come to their arm's length in steps: what grows or drifts over the steps
    can be compared at the same step only."""
    whole = {
        arm: [run for run in of_arm if last_step(run) >= lengths[arm]]
        for arm, of_arm in runs.items()
    }
    return {arm: of_arm for arm, of_arm in whole.items() if of_arm}


def _curves(
    recipe: Recipe, runs: Runs, lengths: Mapping[str, int], folder: Path
) -> tuple[str, dict[str, str]]:
    """(the summary's body, CSV texts by file name); the figures are written."""
    from azr_population.runs.diagnostics.plots import curves

    whole = completed(runs, lengths)
    table = make_table(recipe, whole, lengths)
    files = {"table.csv": table_csv(recipe, table)} if recipe.rows else {}
    parts = []
    if recipe.rows:
        if recipe.primary:
            text, files["primary.csv"] = primary_tables(recipe, table)
            parts.append(text)
        parts += [
            table_markdown(table),
            "Means over seeds with 95% intervals (Student's t); IQM: the interquartile mean with a "
            "bootstrap interval over seeds, from five seeds on. Bold: the difference to "
            f"`{baseline_of(recipe)}` ({'paired' if recipe.paired else 'Welch'}) has p < .05 after "
            "Holm's correction for all differences in the table that are not primary. p-values, "
            "and those by permutation where seeds suffice, are in table.csv.",
        ]
        if any(row.series in _EXTREMES for row in recipe.rows):
            parts.append(_LUCK)
        steps = min(lengths.values())
        short = [
            last_step(run) * steps // lengths[arm] for arm, of_arm in runs.items() for run in of_arm
        ]
        if (least := min(short, default=steps)) < steps:
            parts.append(
                f"The table leaves out the runs that have not come to step {steps}, the figures "
                f"show them; `--draw --steps {least}` compares them all at step {least}."
            )
    for figure in recipe.figures:
        lines = figure_curves(figure, runs, lengths)
        if not lines:
            parts.append(f"No run has `{figure.series}` yet.")
            continue
        files[f"{figure.name}.csv"] = curves_csv(lines)
        title, label = figure.words
        curves(folder / figure.name, title, label, lines, "", figure.limits)
        parts.append(f"![{title}]({figure.name}.svg)")
        if figure.note:
            parts.append(figure.note)
    return "\n\n".join(parts), files


def _wallclock(recipe: Recipe, runs: Runs, steps: int, folder: Path) -> tuple[str, dict[str, str]]:
    from azr_population.runs.diagnostics.plots import bars

    baseline = recipe.baseline or recipe.arms[0]
    text, files = wallclock_tables(runs, steps, baseline)
    estimates = ratio_estimates(runs, steps, baseline)
    if not estimates:
        return text, files
    bars(
        folder / "wallclock", recipe.title, f"seconds per step over those of {baseline}", estimates
    )
    return f"{text}\n\n![{recipe.title}](wallclock.svg)", files


def _mismatched(planned: Sequence[PlannedRun]) -> dict[str, str]:
    """What is to be said of runs that lie in the place of another one, by the run's name."""
    found = {}
    for run in planned:
        if run.started:
            try:
                if told := other_values(run):
                    found[run.name] = f"is another run and left out: it has {told}"
            except UserError as error:
                found[run.name] = f"cannot be checked against its arm and is left out: {error}"
    return found


def _scope_note(
    planned: Sequence[PlannedRun], steps: int, scale: str, mismatched: Mapping[str, str]
) -> str:
    """What the results rest on, and what is missing."""
    arms = list(dict.fromkeys(run.arm.name for run in planned))
    seeds = len({run.seed for run in planned})
    lines = [f"{len(arms)} arms, {seeds} {'seed' if seeds == 1 else 'seeds'}, {steps} steps."]
    lines += [
        f"**{run.name} is at step {run.done} of {run.steps}.**"
        for run in planned
        if not run.finished
    ]
    lines += [f"**{name} {told}.**" for name, told in mismatched.items()]
    kept: dict[str, list[str]] = {}
    older: dict[str, list[str]] = {}
    for run in planned:
        if run.started and run.name not in mismatched:
            if run.is_kept:
                commit = RunDirectory(run.path).environment().get("commit")
                kept.setdefault(f"at commit {commit[:7]}" if commit else "before", []).append(
                    run.name
                )
            # What a run inside AZR was to have, our own configuration cannot compose.
            for key in keys_without_value(run) if scale == "nano" else ():
                older.setdefault(key, []).append(run.name)
    lines += [f"Played {when} and kept: {', '.join(names)}." for when, names in kept.items()]
    for key, names in older.items():
        lines.append(f"Played before there was `{key}`: {', '.join(names)}.")
    return " ".join(lines)


def command() -> str:
    """The command line as it was typed, without the place of the program."""
    return shlex.join([Path(sys.argv[0]).name.replace("cli.py", "azr-population"), *sys.argv[1:]])


def versions(
    recipe: Recipe, arms: Arms, planned: Sequence[PlannedRun], steps: int, scale: str
) -> dict[str, Any]:
    """What made the results: command, commit, packages, base, and the overrides of every arm."""
    here = environment()
    played = [(run, RunDirectory(run.path).environment()) for run in planned]
    own = {
        arm.name: list((arm.nano if scale == "nano" else arm.azr) or ())
        for arm in (arms.find(run.arm.name) for run in planned)
    }
    return {
        "command": command(),
        "commit": here["commit"],
        "python": here["python"],
        "platform": here["platform"],
        "cores": os.cpu_count(),
        "packages": here["packages"],
        # Of the runs themselves, which may be older than what draws them.
        "bases": {run.arm.base or "": one["base"] for run, one in played if one.get("base")},
        "commits": sorted({one["commit"] for _, one in played if one.get("commit")}),
        "scale": scale,
        "steps": steps,
        "seeds": sorted({run.seed for run in planned}),
        "common": list((recipe.scale(arms) if scale == "nano" else arms.scales[scale]).common),
        "overrides": list(recipe.overrides) if scale == "nano" else [],
        "arms": own,
        "runs": {run.name: run.done for run in planned},
    }
