"""Draws a recipe: its `summary.md`, which is also printed, CSV, SVG and what made them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.markdown import Markdown

from azr_population.analysis import recipe_table
from azr_population.analysis.charts import curves, to_svg
from azr_population.analysis.frame import BUDGET, budget, read_run
from azr_population.analysis.metrics import all_metrics
from azr_population.analysis.recipe_plan import (
    PlannedRun,
    RecipePlan,
    command,
    commits_of,
    other_values,
)
from azr_population.analysis.recipe_table import Cell, Decision, Results, Tables
from azr_population.analysis.recipes import Chart, Recipe, TableRow
from azr_population.analysis.statistics import Estimate, band, interval_text
from azr_population.errors import UserError
from azr_population.files import write_atomically, writing
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


def draw(plan: RecipePlan) -> Path:
    """Prints the recipe's results, writes them into `plan.results` and returns its `summary.md`.

    Runs that have no records yet, or are not of their arm, are left out; the summary names them.
    """
    recipe, folder, lengths = plan.recipe, plan.results, plan.lengths
    foreign = {
        run.name: f"{run.name} has {changed}, so it is left out"
        for run in plan.runs
        if not plan.in_azr and run.started and (changed := other_values(run))
    }
    tables = read_tables([run for run in plan.runs if run.name not in foreign])
    missing = missing_metrics(recipe, tables)
    with writing(f"--results {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    results = recipe_table.results_of(recipe, tables, lengths)
    files = {"budget.csv": budget_frame(tables, plan.runs)}
    heading = [
        f"# {recipe.title} ({recipe.figure}), {plan.options.scale} scale",
        f"Made by `{command()}`.",
        plan.scale.note,
        _scope(plan, foreign),
        f"The paper: {recipe.paper}" if recipe.paper else "",
        f"Recorded by none of these runs: {', '.join(missing)}." if missing else "",
    ]
    parts: list[str] = []
    if recipe.hypotheses:
        files["hypotheses.csv"] = recipe_table.hypotheses_frame(results.answers)
        parts.append(hypotheses_markdown(results))
    if recipe.table:
        files["table.csv"] = recipe_table.frame_of(results)
        test = "paired t" if recipe.paired else "Welch"
        parts.append(table_markdown(results))
        parts.append(_READING.format(baseline=recipe.baseline, test=test))
        if any(row.metric in ("eval/best", "eval/worst") for row in recipe.table):
            parts.append(_LUCK)
    shown = _joined([*heading[2:], *parts]).replace("<br>", " ")
    for chart in recipe.charts:
        frame = chart_frame(chart, tables, lengths)
        if frame.empty:
            parts.append(f"No run has `{chart.metric}` yet.")
            continue
        files[f"{chart.file}.csv"] = frame
        curve_chart = curves(frame, unit=chart.unit, percent=is_percent(chart.metric), dashes=True)
        to_svg(curve_chart, folder / f"{chart.file}.svg", chart.title)
        parts += [f"![{chart.title}]({chart.file}.svg)", chart.note]
    parts.append("What a member had per step (whole runs, means over seeds):")
    shares = files["budget.csv"].astype(str)
    parts.append(_markdown([list(shares), *shares.values.tolist()]))
    for name, frame in files.items():
        text = frame.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_atomically(folder / name, text)
    write_atomically(folder / "versions.json", json.dumps(versions(plan), indent=1) + "\n")
    summary = folder / "summary.md"
    write_atomically(summary, _joined([*heading, *parts]) + "\n")
    console = Console()
    if console.is_terminal:
        console.print(Markdown(shown))
    else:
        print(shown)
    return summary


def _joined(paragraphs: Iterable[str]) -> str:
    return "\n\n".join(filter(None, paragraphs))


def read_tables(runs: Sequence[PlannedRun]) -> Tables:
    """The tidy tables of all runs that have any records, by arm and seed, without the members."""
    tables: dict[str, dict[str, pd.DataFrame]] = {}
    for run in (run for run in runs if run.started):
        table = read_run(run.path, run.arm_name, run.seed)
        if len(table):
            table = table[table["member"].isna()]
            tables.setdefault(run.arm_name, {})[run.path.name] = table
    return tables


def missing_metrics(recipe: Recipe, tables: Tables) -> list[str]:
    """The metrics of the recipe's table and charts that no run has. Raises UserError: all."""
    metrics = [*(row.metric for row in recipe.table), *(chart.metric for chart in recipe.charts)]
    wanted = list(dict.fromkeys(metrics))
    recorded = {name for of in tables.values() for table in of.values() for name in table["metric"]}
    missing = [metric for metric in wanted if metric not in recorded]
    if wanted and len(missing) == len(wanted):
        raise UserError(
            f"{recipe.name} cannot be drawn: none of its runs has {', '.join(missing)}; they were "
            "played before these were recorded, so run them again: leave out --from-results and "
            "--plot-only, and name another --out"
        )
    return missing


def is_percent(metric: str) -> bool:
    """Whether a metric is a fraction, which is shown in percent."""
    declared = all_metrics().get(metric)
    return declared.percent if declared else metric.startswith("eval/greedy/")


def chart_frame(chart: Chart, tables: Tables, lengths: Mapping[str, int]) -> pd.DataFrame:
    """The chart's lines, mean over seeds and 95% interval: `series`, `step`, `value`, `low`,
    `high`; at steps that all seeds of an arm have."""
    parts = []
    for arm, of_arm in tables.items():
        for role in chart.roles:
            lines = {
                seed: points[points.index <= lengths[arm]]
                for seed, table in of_arm.items()
                if len(points := recipe_table.curve(table, chart.metric, role))
            }
            if lines:
                name = f"{arm} {role}s" if role and len(chart.roles) > 1 else arm
                parts.append(band(lines).assign(series=name))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def budget_frame(tables: Tables, runs: Sequence[PlannedRun]) -> pd.DataFrame:
    """What a member of each arm had per step: whether the comparison is fair."""
    directories = {(run.arm_name, run.path.name): run.directory for run in runs}
    lines = []
    for arm, of_arm in tables.items():
        configs = [whole_config(directories[arm, seed]).get("population") or {} for seed in of_arm]
        counts = [c.get("teachers", 0) + c.get("students", 0) or 1 for c in configs]
        parts = [budget(table, n) for n, table in zip(counts, of_arm.values(), strict=True)]
        used = pd.DataFrame(parts).mean()
        line: dict[str, Any] = {"arm": arm, "members": counts[0]}
        for key, title in BUDGET.items():
            digits = {"trained_samples": 1, "updates": 2}.get(key, 0)
            line[title] = f"{used[key]:.{digits}f}"
        line["seconds/step"] = f"{used['seconds']:.1f}"
        roles = ("teacher", "student") if counts[0] > 1 else ("agent",)
        rates = dict.fromkeys(
            f"{role} {config[f'{role}_lr']:g}"
            for config in configs
            for role in roles
            if isinstance(config.get(f"{role}_lr"), (int, float))
        )
        lines.append(line | {"learning rates": ", ".join(rates) or "-"})
    return pd.DataFrame(lines)


def table_markdown(results: Results) -> str:
    """The table for people; a cell names its n where it rests on fewer seeds than its column."""
    cells = results.cells
    measured = {arm for of_row in cells.values() for arm in of_row}
    arms = [arm for arm in results.recipe.arms if arm in measured]
    arms += sorted(measured - set(arms))  # of --arms
    seeds = {arm: max(of[arm].estimate.n for of in cells.values() if arm in of) for arm in arms}
    paper = any(row.paper for row in cells)
    lines = [["", *(f"{arm} (n={seeds[arm]})" for arm in arms), *(["the paper"] * paper)]]
    for row, of_row in cells.items():
        shown = [_cell(row, of_row[arm], seeds[arm]) if arm in of_row else "-" for arm in arms]
        lines.append([row.label, *shown, *([row.paper or "-"] * paper)])
    return _markdown(lines)


def _cell(row: TableRow, cell: Cell, seeds: int) -> str:
    """`**38.2% [37.1, 39.3]**`, the interquartile mean below."""
    text = _interval(row, cell.estimate)
    if cell.estimate.n < seeds:
        text += f" (n={cell.estimate.n})"
    if cell.differs:
        text = f"**{text}**"
    return f"{text}<br>IQM {_interval(row, cell.middle)}" if cell.middle else text


def _interval(row: TableRow, test: Estimate) -> str:
    percent = is_percent(row.metric) and row.reduce != "autocorrelation" and not row.ratio
    return interval_text(test, percent)


def hypotheses_markdown(results: Results) -> str:
    """The hypotheses as they were written, and what came out."""
    recipe = results.recipe
    lines = ["## Hypotheses, written before the runs", ""]
    lines += [f"- {_answer(recipe, decision)}" for decision in results.answers]
    if len(results.answers) > 1 and recipe.together:
        lines += ["", "All of them have to hold at once, so each is tested at its full level."]
    elif len(results.answers) > 1:
        lines += ["", "p is corrected by Holm for their number, the intervals by Bonferroni."]
    if recipe.decision:
        lines += ["", f"Decision: {recipe.decision}"]
    return "\n".join(lines)


def _answer(recipe: Recipe, one: Decision) -> str:
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


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *lines = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, f"|{'---|' * len(rows[0])}", *lines])


def _scope(plan: RecipePlan, foreign: Mapping[str, str]) -> str:
    """What the results rest on, and what is missing."""
    finished = [run for run in plan.runs if run.finished]
    lines = [
        f"{len(finished)} of {len(plan.runs)} runs, seeds {plan.seeds[0]} to {plan.seeds[-1]}, "
        f"{min(plan.lengths.values())} steps."
    ]
    if short := [f"{run.name} (step {run.done})" for run in plan.runs if not run.finished]:
        lines.append(
            f"Not finished, drawn as far as they are and not in the table: {', '.join(short)}."
        )
    lines += [f"**{text}.**" for text in foreign.values()]
    if commits := ", ".join(f"{name} ({n})" for name, n in commits_of(finished).items()):
        lines.append(f"Run at commits {commits}.")
    return " ".join(lines)


def versions(plan: RecipePlan) -> dict[str, Any]:
    """What made the results: command, versions, bases, and the overrides of every arm."""
    here, runs = environment(), [*plan.origins, *plan.runs]
    bases = {run.arm.base or "": run.directory.environment().get("base") for run in runs}
    arms = {run.arm_name: run.arm for run in runs}
    return {
        "command": command(),
        **{key: here[key] for key in ("commit", "python", "platform", "packages")},
        # Of the runs themselves, which may be older than what draws them.
        "bases": {name: weights for name, weights in bases.items() if weights},
        "commits": dict(commits_of(runs)),
        "seeds": list(plan.seeds),
        "common": list(plan.scale.common),
        "overrides": list(plan.recipe.overrides),
        "arms": {
            name: list((arm.azr_overrides if plan.in_azr else arm.overrides) or ())
            for name, arm in arms.items()
        },
        "runs": {run.name: last_step(run.directory) for run in runs},
    }
