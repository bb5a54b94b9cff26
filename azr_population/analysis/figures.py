"""The figures of a run's page, from its tidy table and its tasks and matches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from azr_population.analysis import charts
from azr_population.analysis.html import embed, format_number
from azr_population.domains.metric import Metric
from azr_population.reading.run_data import RunData
from azr_population.runs.records import Record, by_number

_EVALS = {"eval/greedy": "mean", "eval/best": "best member", "eval/worst": "weakest member"}
_UNDRAWN = {"time/step", *_EVALS}
"""Shown elsewhere."""
POINTS, REASONS = 50, 7
"""Most steps of a scatter, and most reasons of refusal that are drawn."""


Lines = tuple[str, str, str, pd.DataFrame, dict[str, Any]]
"""Section of the page, title, note, the frame of `charts.curves` and its options."""


def run_figures(
    table: pd.DataFrame, metrics: Sequence[Metric], events: Sequence[int], steps: int
) -> tuple[dict[str, list[Markup]], dict[str, list[str]]]:
    """Charts by section of the page, and a sentence on each metric that does not change or was
    measured once or twice."""
    figures: dict[str, list[Markup]] = {}
    constant: dict[str, list[str]] = {}
    all_lines = [
        _eval_lines(table),
        *_metric_lines(table, metrics),
        _refusals(table),
        _times(table),
    ]
    for section, title, note, rows, options in all_lines:
        percent = bool(options.get("percent"))
        meaning = f" ({note})" if note else ""
        if 0 < rows["step"].nunique() <= 2 < table["step"].nunique():
            ends = rows[rows["member"].isna()].groupby("series", sort=False)["value"]
            changes = []
            for name, values in ends:
                texts = [format_number(value, percent) for value in values.iloc[[0, -1]]]
                changes.append(f"{name} {' to '.join(dict.fromkeys(texts))}")
            constant.setdefault(section, []).append(f"{title}{meaning}: {', '.join(changes)}.")
        elif rows["value"].nunique() > 1:
            columns = ["step", "series", "member", "value", "piece"]
            rows = rows[[name for name in columns if name in rows]]
            chart = charts.curves(rows, events=events, steps=steps, **options)
            figures.setdefault(section, []).append(embed(chart, title, note))
        elif len(rows):
            value = format_number(float(rows["value"].iloc[0]), percent)
            constant.setdefault(section, []).append(f"{title}{meaning}: {value} throughout.")
    if evolving := _learning_rates(table):
        figures["training"] = figures.get("training", []) + evolving
    return figures, constant


def _eval_lines(table: pd.DataFrame) -> Lines:
    """The evals share a chart."""
    rows = table[table["metric"].isin(_EVALS) & table["role"].isna()]
    rows = _in_order(rows.assign(series=rows["metric"].map(_EVALS), member=None), _EVALS.values())
    note = "greedy; best member: larger populations get lucky more often"
    colours = dict.fromkeys(_EVALS.values(), charts.ROLES["student"])
    return (
        "skill",
        "Held-out tasks",
        note,
        rows,
        {"percent": True, "dashes": True, "colours": colours},
    )


def _metric_lines(table: pd.DataFrame, metrics: Sequence[Metric]) -> Iterator[Lines]:
    """The lines of metrics that have a section: roles, members, and for some types of task."""
    for metric in metrics:
        if not metric.section or metric.name in _UNDRAWN:
            continue
        rows, note = table[table["metric"] == metric.name], metric.about
        if metric.name == "mu":
            note = "TrueSkill; the students' mean is 25 by definition, so a teacher's is relative"
        # The students' mean mu is 25, and a teacher's solve rate is that of its students.
        role = {"mu": "student", "solve_rate": "teacher"}.get(metric.name)
        if role and rows["role"].nunique() > 1:
            rows = rows[(rows["role"] != role) | (rows["member"].notna() & (role == "student"))]
        alone = rows.groupby("role")["member"].transform("nunique") == 1
        rows = rows[~(alone & rows["member"].notna())]
        options: dict[str, Any] = {
            "percent": metric.percent,
            "unit": metric.unit if not metric.percent else "",
            "smooth": not metric.is_eval and metric.reduce != "last",  # coverage only grows
            "colours": {**charts.ROLES, "mean": charts.INK},
        }
        rows = _in_pieces(table, rows.assign(series=rows["role"].fillna("mean")))
        yield metric.section, metric.title, note, rows, options
        if metric.name in ("solve_rate", "valid_frac"):
            types = table[table["metric"].str.fullmatch(rf"type/[^/]+/{metric.name}")]
            types = types.assign(series=types["metric"].str.split("/").str[1], member=None)
            names = types["series"].unique()
            colours = dict(zip(names, charts.CATEGORIES[6:2:-1], strict=False))
            options = {"percent": True, "smooth": True, "colours": colours}
            if len(names) > 1:  # of one type it is the chart before
                yield metric.section, f"{metric.title} by task type", "", types, options


def _in_pieces(table: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """A member's line is broken where the individual in its slot was replaced."""
    generation = table[table["metric"] == "generation"].dropna(subset=["member"])
    if not len(generation):
        return rows
    pieces = generation.rename(columns={"value": "piece"})[["step", "member", "piece"]]
    # At its birth a child's generation is recorded, and the results are the replaced one's.
    pieces = pieces.assign(step=pieces["step"] + 1)
    joined = rows.merge(pieces, on=["step", "member"], how="left")
    return joined.assign(piece=joined["piece"].fillna(0))


def _refusals(table: pd.DataFrame) -> Lines:
    """Why proposals were refused, as shares of all proposals."""
    rows = table[table["metric"].str.startswith("reason/")]
    reasons = rows["metric"].str.removeprefix("reason/").str.replace("_", " ")
    counts = rows.assign(series=reasons).pivot_table(
        "value", "step", "series", "sum", fill_value=0.0
    )
    shares = counts.div(counts.sum(axis=1).replace(0.0, 1.0), axis=0)
    shares = shares.drop(columns="ok", errors="ignore")
    names = shares.sum().sort_values(ascending=False).index[:REASONS]
    lines = shares[names].melt(ignore_index=False).reset_index().assign(member=None)
    note = "shares of all proposals; the most common reasons"
    return "proposing", "Refused proposals", note, lines, {"percent": True, "smooth": True}


def _times(table: pd.DataFrame) -> Lines:
    """Seconds of a step by phase, without those of less than 1%."""
    rows = table[table["metric"].str.startswith("time/") & (table["metric"] != "time/step")]
    rows = rows.assign(series=rows["metric"].str.removeprefix("time/"), member=None)
    totals = rows.groupby("series")["value"].sum().sort_values(ascending=False)
    rows = _in_order(rows, totals[totals >= 0.01 * totals.sum()].index[:6])
    note = "by phase; those of less than 1% are left out"
    return "training", "Seconds per step", note, rows, {"unit": "s", "dashes": True}


def _learning_rates(table: pd.DataFrame) -> list[Markup]:
    """The members' learning rates over time, where they differ."""
    rows = table[(table["metric"] == "lr") & table["member"].notna() & (table["value"] > 0)]
    spread = rows.groupby(["role", "step"])["value"].transform("nunique")
    rows = rows[spread.groupby(rows["role"]).transform("max") > 1]
    if not len(rows):
        return []
    stride = math.ceil(rows["step"].nunique() / POINTS)
    rows = rows[rows["step"] % stride == 0].assign(series=rows["role"])
    chart = charts.scatter(rows[["step", "series", "member", "value"]])
    return [embed(chart, "Learning rates", "of each member, in its update")]


def _in_order(rows: pd.DataFrame, series: Iterable[str]) -> pd.DataFrame:
    """The rows of these series, one after the other."""
    return pd.concat([rows[:0], *(rows[rows["series"] == name] for name in series)])


def match_ups(matches: Iterable[Record], replaced: int) -> Markup:
    """The solve rate of each student at each teacher's tasks, the mean over its valid tasks;
    nothing without matches."""
    rows = [
        (teacher, student, match.get("valid") or 0.0, match.get("solve_rate"), 1)
        for match in matches
        if (teacher := match.get("teacher")) != (student := match.get("student"))
        if teacher and student
    ]
    frame = pd.DataFrame(rows, columns=["row", "column", "tasks", "rate", "count"])
    if not len(frame):
        return Markup()
    frame["rate"] = frame["rate"].astype(float)
    frame["solved"] = frame["tasks"] * frame["rate"]
    frame["tasks"] = frame["tasks"].where(frame["rate"].notna(), 0.0)
    sides = [sorted(frame[side].unique(), key=by_number) for side in ("row", "column")]
    counted = pd.concat([frame, frame.assign(row="all")])
    counted = pd.concat([counted, counted.assign(column="all")])
    sums = counted.groupby(["row", "column"])[["count", "tasks", "solved"]].sum()
    sums["value"] = sums["solved"] / sums["tasks"].where(sums["tasks"] > 0)
    order = pd.MultiIndex.from_product([[*names, "all"] for names in sides])
    order = order.set_names(["row", "column"])
    cells = sums.reindex(order).dropna(subset=["count"]).reset_index()
    for side in ("row", "column"):
        short = cells[side].str.extract(r"^(\w)\w*_(\d+)$")
        cells[side] = (short[0].str.upper() + short[1]).fillna(cells[side])
    slots = f" {cells['row'].iloc[0]} is every member of that name, replaced ones too."
    note = (
        "Share of a teacher's valid tasks (row) that a student (column) solved, and their matches."
    )
    chart = charts.heatmap(cells[["row", "column", "value", "count"]], counts="matches")
    return embed(chart, "Match-ups", note + slots * (replaced > 0))


def filled_cells(run: RunData) -> str:
    """The share of its domain's problem space that a run's tasks fill, or why it is unknown."""
    space, tasks = run.domain.space, run.placed_tasks
    if space is None:
        return "This task.domain has no problem space."
    if not len(tasks):
        return "No task was placed in the problem space."
    filled, cells = tasks["cell"].nunique(), len(space.archive)
    return f"{len(tasks):,} valid tasks fill {filled:,} of {cells:,} cells."
