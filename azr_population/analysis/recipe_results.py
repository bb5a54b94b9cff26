"""Draws a recipe: its tables in the terminal, and `summary.md`, CSV, SVG and what made them."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from azr_population.analysis import recipe_table as numbers
from azr_population.analysis.frame import BUDGET, budget, read_run
from azr_population.analysis.metrics import all_metrics
from azr_population.analysis.recipe_runs import (
    PlannedRun,
    commits_of,
    other_values,
)
from azr_population.analysis.recipe_table import Cell, Decision, Results, Tables
from azr_population.analysis.recipes import Arms, Chart, Recipe, TableRow
from azr_population.analysis.statistics import Estimate, band, interval_text
from azr_population.errors import UserError
from azr_population.files import write_atomically, writing
from azr_population.runs import RunDirectory
from azr_population.runs.records import last_step, whole_config
from azr_population.versions import environment

_READING = (
    "Means over seeds with 95% intervals (Student's t); IQM: interquartile mean with a bootstrap "
    "interval over seeds, from five seeds on. **Bold**: differs from `{baseline}` ({test}), "
    "p < .05 after Holm's correction for all differences in the table; differences that a "
    "hypothesis is about are bold where that was shown or refuted. p-values are in table.csv."
)
_LUCK = (
    "Of several members with one and the same skill the best scores above, and the weakest below, "
    "a single one by luck: a best member above the single agent, or a weakest one below it, is not "
    "evidence. The means can be compared."
)


def read_tables(planned: Sequence[PlannedRun]) -> Tables:
    """The tidy tables of all runs that have any records, by arm and seed."""
    tables: dict[str, dict[str, pd.DataFrame]] = {}
    for run in planned:
        if not run.started or run.is_origin:
            continue
        table = read_run(run.path, run.arm_name, run.seed)
        if len(table):
            table = table[table["member"].isna()]
            tables.setdefault(run.arm_name, {})[run.path.name] = table
    return tables


def draw(
    recipe: Recipe,
    arms: Arms,
    planned: Sequence[PlannedRun],
    lengths: Mapping[str, int],
    scale: str,
    folder: Path,
) -> Path:
    """Prints the recipe's tables, writes its results into `folder` and returns its `summary.md`.

    Runs that have no records yet, or are not of their arm, are left out; the summary names them.
    """
    from azr_population.analysis.charts import curves, to_svg

    foreign = {
        run.name: f"{run.name} has {changed}, so it is left out"
        for run in planned
        if scale == "nano" and run.started and (changed := other_values(run))
    }
    tables = read_tables([run for run in planned if run.name not in foreign])
    missing = missing_metrics(recipe, tables)
    with writing(f"--results {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    results = numbers.results_of(recipe, tables, lengths)
    files = {"budget.csv": budget_frame(tables, planned)}
    parts: list[str] = []
    if recipe.hypotheses:
        files["hypotheses.csv"] = numbers.hypotheses_frame(results.answers)
        parts.append(hypotheses_markdown(results))
    if recipe.table:
        files["table.csv"] = numbers.frame_of(results)
        header, rows = table_rows(results)
        test = "paired t" if recipe.paired else "Welch"
        parts += [_markdown(header, rows), _READING.format(baseline=recipe.baseline, test=test)]
        if any(row.metric in ("eval/best", "eval/worst") for row in recipe.table):
            parts.append(_LUCK)
    for chart in recipe.charts:
        frame = chart_frame(chart, tables, lengths)
        if frame.empty:
            parts.append(f"No run has `{chart.metric}` yet.")
            continue
        files[f"{chart.file}.csv"] = frame
        drawn = curves(frame, unit=chart.unit, percent=is_percent(chart.metric), dashes=True)
        to_svg(drawn, folder / f"{chart.file}.svg", chart.title)
        parts.append(f"![{chart.title}]({chart.file}.svg)")
        parts += [chart.note] if chart.note else []
    budget = files["budget.csv"]
    parts.append("What a member had per step (whole runs, means over seeds):")
    parts.append(_markdown(list(budget), budget.astype(str).values.tolist()))
    for name, frame in files.items():
        text = frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_atomically(folder / name, text)
    pins = versions(recipe, arms, planned, scale)
    write_atomically(folder / "versions.json", json.dumps(pins, indent=1) + "\n")
    heading = [
        f"# {recipe.title} ({recipe.figure}), {scale} scale",
        f"Made by `{command()}`.",
        *filter(None, [arms.scales[recipe.settings].note if scale == "nano" else ""]),
        _scope(planned, lengths, foreign),
        *([f"The paper: {recipe.paper}"] if recipe.paper else []),
        *([f"Recorded by none of these runs: {', '.join(missing)}."] if missing else []),
    ]
    summary = folder / "summary.md"
    write_atomically(summary, "\n\n".join([*heading, *parts]) + "\n")
    print_results(results, heading[2:])
    return summary


def missing_metrics(recipe: Recipe, tables: Tables) -> list[str]:
    """The metrics of the recipe's table and charts that no run has. Raises UserError: all."""
    wanted = {
        **{row.metric: None for row in recipe.table},
        **{chart.metric: None for chart in recipe.charts},
    }
    recorded = {
        str(m) for of_arm in tables.values() for t in of_arm.values() for m in set(t["metric"])
    }
    missing = [metric for metric in wanted if metric not in recorded]
    if wanted and len(missing) == len(wanted):
        raise UserError(
            f"{recipe.name} cannot be drawn: none of its runs has {', '.join(missing)}; they were "
            "played before these were recorded, so play them again: leave out --from-results and "
            "--plot-only, and name another --out"
        )
    return missing


def is_percent(metric: str) -> bool:
    """Whether a metric is a fraction, which is shown in percent."""
    known = all_metrics().get(metric)
    return known.percent if known else metric.startswith("eval/greedy/")


def chart_frame(chart: Chart, tables: Tables, lengths: Mapping[str, int]) -> pd.DataFrame:
    """The chart's lines, mean over seeds and 95% interval: `series`, `step`, `value`, `low`,
    `high`; at steps that all seeds of an arm have."""
    parts = []
    for arm, of_arm in tables.items():
        for role in chart.roles:
            curves = {
                seed: points[points.index <= lengths[arm]]
                for seed, table in of_arm.items()
                if len(points := numbers.curve(table, chart.metric, role))
            }
            if curves:
                name = f"{arm} {role}s" if role and len(chart.roles) > 1 else arm
                parts.append(band(curves).assign(series=name))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def budget_frame(tables: Tables, planned: Sequence[PlannedRun]) -> pd.DataFrame:
    """What a member of each arm had per step: whether the comparison is fair."""
    runs = {(run.arm_name, run.path.name): run.directory for run in planned if run.started}
    lines = []
    for arm, of_arm in tables.items():
        populations = {seed: _population(runs[arm, seed]) for seed in of_arm}
        members = {
            seed: (population.get("teachers", 0) + population.get("students", 0)) or 1
            for seed, population in populations.items()
        }
        used = pd.DataFrame([budget(table, members[seed]) for seed, table in of_arm.items()]).mean()
        line: dict[str, Any] = {"arm": arm, "members": next(iter(members.values()))}
        for key, title in BUDGET.items():
            digits = {"trained_samples": 1, "updates": 2}.get(key, 0)
            line[title] = f"{used[key]:.{digits}f}"
        line["seconds/step"] = f"{used['seconds']:.1f}"
        roles = ("teacher", "student") if line["members"] > 1 else ("agent",)
        rates = dict.fromkeys(
            f"{role} {population[f'{role}_lr']:g}"
            for population in populations.values()
            for role in roles
            if isinstance(population.get(f"{role}_lr"), (int, float))
        )
        line["learning rates"] = ", ".join(rates) or "-"
        lines.append(line)
    return pd.DataFrame(lines)


def _population(run: RunDirectory) -> dict[str, Any]:
    return dict(whole_config(run).get("population") or {})


def table_rows(results: Results) -> tuple[list[str], list[list[str]]]:
    """(header, rows) of the table for people, in Markdown; a cell names its n where it rests on
    fewer seeds than its column."""
    cells = results.cells
    arms = [arm for arm in results.recipe.arms if any(arm in of_row for of_row in cells.values())]
    arms += [a for of_row in cells.values() for a in of_row if a not in arms]
    arms = list(dict.fromkeys(arms))
    seeds = {arm: max(o[arm].estimate.n for o in cells.values() if arm in o) for arm in arms}
    paper = any(row.paper for row in cells)
    header = ["", *(f"{arm} (n={seeds[arm]})" for arm in arms), *(["the paper"] * paper)]
    rows = [
        [row.label]
        + [shown(row, of_row[arm], seeds[arm]) if arm in of_row else "-" for arm in arms]
        + [row.paper or "-"] * paper
        for row, of_row in cells.items()
    ]
    return header, rows


def shown(row: TableRow, cell: Cell, seeds: int) -> str:
    """`**38.2% [37.1, 39.3]**`, the interquartile mean below."""
    text = with_interval(row, cell.estimate)
    if cell.estimate.n < seeds:
        text += f" (n={cell.estimate.n})"
    if cell.differs:
        text = f"**{text}**"
    if middle := cell.middle:
        text += f"<br>IQM {with_interval(row, middle)}"
    return text


def with_interval(row: TableRow, test: Estimate) -> str:
    """`38.2% [37.1, 39.3]`, `18.4 [17.9, 18.9]`, or the mean alone without an interval."""
    percent = is_percent(row.metric) and row.reduce != "autocorrelation" and not row.ratio
    return interval_text(test, percent)


def hypotheses_markdown(results: Results) -> str:
    """The hypotheses as they were written, and what came out."""
    recipe = results.recipe
    lines = ["## What was to be shown, written before it was played", ""]
    lines += [f"- {answer_line(recipe, one)}" for one in results.answers]
    if len(results.answers) > 1:
        lines += ["", "All of them have to hold at once, so each is tested at its full level."]
        if not recipe.together:
            lines[-1] = "p is corrected by Holm for their number, the intervals by Bonferroni."
    if recipe.decision:
        lines += ["", f"Decision: {recipe.decision}"]
    return "\n".join(lines)


def answer_line(recipe: Recipe, one: Decision) -> str:
    hypothesis, test = one.hypothesis, one.test
    row = recipe.row(hypothesis.row)
    what = f"`{hypothesis.arm}`" + (f" minus `{hypothesis.than}`" if hypothesis.than else "")
    above = f" (above {hypothesis.margin:g}?)" if hypothesis.margin else ""
    line = f"{hypothesis.claim} {row.label}, {what}{above}: "
    if test is None:
        return line + f"**{one.verdict}**."
    n = " and ".join(map(str, dict.fromkeys(test.counts)))
    line += interval_text(test, is_percent(row.metric), signed=bool(hypothesis.than))
    line += f" ({1 - test.level:.1%} interval), n={n}, p={one.p:.2g}"
    if test.permutation is not None:
        line += f", by permutation {test.permutation:.2g}"
    return f"{line}: **{one.verdict}**."


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (header, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(header)}", *lines[1:]])


def print_results(results: Results, notes: Iterable[str]) -> None:
    """The hypotheses and the table on standard output; what differs is bold."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
    for note in notes:
        console.print(escape(note))
    for answer in results.answers:
        console.print(_styled(f"- {answer_line(results.recipe, answer)}"))
    header, rows = table_rows(results)
    table = Table(*map(escape, header), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(_styled(cell.partition("<br>")[0]) for cell in row))
    console.print(table)


def _styled(text: str) -> str:
    """Markdown's bold as rich's; it stays where the output is no terminal."""
    return (
        escape(text)
        if not sys.stdout.isatty()
        else re.sub(r"\*\*(.+?)\*\*", r"[bold]\1[/bold]", escape(text))
    )


def _scope(
    planned: Sequence[PlannedRun], lengths: Mapping[str, int], foreign: Mapping[str, str]
) -> str:
    """What the results rest on, and what is missing."""
    wanted = [run for run in planned if not run.is_origin]
    finished = [run for run in wanted if run.finished]
    seeds = sorted({run.seed for run in wanted})
    lines = [
        f"{len(finished)} of {len(wanted)} runs, seeds {seeds[0]} to {seeds[-1]}, "
        f"{min(lengths.values())} steps."
    ]
    short = [f"{run.name} (step {run.done})" for run in wanted if not run.finished]
    if short:
        lines.append(
            f"Not finished, drawn as far as they are and not in the table: {', '.join(short)}."
        )
    lines += [f"**{text}.**" for text in foreign.values()]
    commits = ", ".join(f"{commit} ({count})" for commit, count in commits_of(finished).items())
    return " ".join([*lines, *([f"Played at commits {commits}."] if commits else [])])


def command() -> str:
    """The command line as it was typed, without the place of the program."""
    return shlex.join([Path(sys.argv[0]).name.replace("cli.py", "azr-population"), *sys.argv[1:]])


def versions(
    recipe: Recipe, arms: Arms, planned: Sequence[PlannedRun], scale: str
) -> dict[str, Any]:
    """What made the results: command, versions, bases, and the overrides of every arm."""
    here = environment()
    played = [(run, run.directory.environment()) for run in planned]
    return {
        "command": command(),
        **{key: here[key] for key in ("commit", "python", "platform", "packages")},
        # Of the runs themselves, which may be older than what draws them.
        "bases": {run.arm.base or "": one["base"] for run, one in played if one.get("base")},
        "commits": dict(commits_of(planned)),
        "seeds": sorted({run.seed for run in planned}),
        "common": list(arms.scales[recipe.settings if scale == "nano" else scale].common),
        "overrides": list(recipe.overrides),
        "arms": {
            run.arm_name: list(
                (run.arm.overrides if scale == "nano" else run.arm.azr_overrides) or ()
            )
            for run in planned
        },
        "runs": {run.name: last_step(run.directory) for run in planned},
    }
