"""Changes in the course of one run, each with its 95% interval: the tiles at the top of its page,
and the same as lines of text.

The first tenth of the steps is set against the last, and the first eval against the last. The
intervals hold the chance in which tasks and answers were drawn. They say nothing about other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from azr_population.analysis.html import format_number
from azr_population.analysis.statistics import Estimate, compare, interval_text, tenth
from azr_population.domains.metric import SOLVERS, Metric
from azr_population.reading.run_data import RunData
from azr_population.reading.tidy import curve
from azr_population.runs.meanings import meaning
from azr_population.runs.records import Record, finite_or_none

SHORT = 40
"""Steps up to which a run is called short: a tenth of them are four steps at most."""
_TILES = (
    Metric("eval/greedy", "Held-out tasks", percent=True, roles=()),
    Metric("solve_rate", "Solve rate", percent=True, roles=SOLVERS),
    Metric("valid_frac", "Valid proposals", percent=True),
)
_COVERAGE = Metric("coverage", "Coverage (cells)")


class Change(NamedTuple):
    """A metric early and late in a run, and the difference (late minus early) with its interval."""

    first: float
    last: float
    difference: Estimate


def measured_changes(run: RunData, last: int) -> dict[str, Change]:
    """Changes of `solve_rate`, the size, `lines`, `valid_frac`, `eval/greedy`, as far as recorded
    up to step `last`; nothing for a run of one step.

    The solve rate and the size of valid tasks and the share of valid proposals are means over
    steps: a step is one observation, because what it proposes and solves depends on the members as
    they were then. The eval is paired by its tasks, each scored by the mean over members.
    """
    if last < 2:
        return {}
    changes: dict[str, Change] = {}
    sizes = [measure.name for measure in run.domain.measures]
    names = ["solve_rate", *sizes[:1], *(name for name in sizes[1:] if name == "lines")]
    tasks = _by_step(run.tasks, names).mean()
    matches = _by_step(run.read("matches"), ["valid", "proposed"]).sum()
    matches = matches[matches["valid"].between(0, matches["proposed"]) & (matches["proposed"] > 0)]
    valid = (matches["valid"] / matches["proposed"]).rename("valid_frac")
    steps = pd.concat([tasks, valid], axis="columns")  # no task of a step may be valid
    width = tenth(last)
    for name, values in steps.items():
        a = values[values.index <= width].dropna()
        b = values[(values.index > max(width, last - width)) & (values.index <= last)].dropna()
        if len(a) and len(b):
            test = compare(b.tolist(), a.tolist(), paired=False)
            changes[str(name)] = Change(a.mean(), b.mean(), test)
    scores: dict[int, list[list[float]]] = {}
    for row in run.evals:
        scores.setdefault(row["step"], []).append(row["greedy"])
    if len(scores) > 1:
        a, b = (pd.DataFrame(scores[pick(scores)]).astype(float).mean() for pick in (min, max))
        if len(a) == len(b):
            test = compare(b.tolist(), a.tolist(), paired=True)
            changes["eval/greedy"] = Change(a.mean(), b.mean(), test)
    return changes


def _by_step(rows: Iterable[Record], names: Sequence[str]) -> Any:
    """These columns of the records, grouped by step."""
    values = [(row["step"], *map(finite_or_none, map(row.get, names))) for row in rows]
    return pd.DataFrame(values, columns=["step", *names]).astype(float).groupby("step")


Tile = dict[str, str]
"""Texts of a figure at the top of the page: `title`, `role`, `colour` (a class of the page's
style), `value`, `before` (the first value, of a change beyond noise), `words` (the change) and
`path` (the curve as points of an SVG of 100 by 30)."""


def tiles_of(
    table: pd.DataFrame, changes: Mapping[str, Change], last: int, size: Metric | None
) -> list[Tile]:
    """The figures at the top of the page; none for what has fewer than two values."""
    tiles = []
    for metric in (*_TILES, *([size] if size else []), _COVERAGE):
        roles = metric.roles or ("mean",)
        curves = ((r, curve(table, metric.name, (r,) if metric.roles else ())) for r in roles)
        role, points = next(((r, line) for r, line in curves if len(line)), ("", pd.Series()))
        if len(points) < 2:
            continue
        ends = points.iloc[[0]], points.iloc[[-1]]
        if not metric.is_eval and metric != _COVERAGE:
            width = tenth(last)
            ends = points[points.index <= width], points[points.index > last - width]
        first, late = (float(end.mean()) for end in ends)
        change = Change(first, late, Estimate(late - first, math.nan, math.nan, (1,)))
        measured = changes.get(metric.name)
        if measured and math.isfinite(measured.difference.low):
            change = measured
        if math.isfinite(change.first) and math.isfinite(change.last):
            tiles.append(_tile(metric, role, points, change))
    return tiles


def _tile(metric: Metric, role: str, points: pd.Series, change: Change) -> Tile:
    first, last = (format_number(value, metric.percent) for value in (change.first, change.last))
    test = change.difference
    words = interval_text(test, metric.percent, signed=True).replace("-", "\u2212")
    if test.sign() is None:
        words += ", interval unknown"
    low, high = points.min(), points.max()
    middle, half = (low + high) / 2, max(high - low, 0.1 if metric.percent else 1e-9) / 2
    heights = 15 - 13 * (points - middle) / half
    across = 100 * points.index / (points.index[-1] or 1)
    tile = {
        "title": metric.title,
        "role": role,
        "colour": "student" if role == "mean" else role,
        "value": last,
        "before": f"{first} → " if test.sign() else "",
        "words": f"within noise: {words}" if test.sign() == 0 else words,
        "path": " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, heights, strict=True)),
    }
    if metric == _COVERAGE:  # it can only grow, so its last value says all
        total = {"role": "", "colour": "ink", "value": f"{round(change.last):,}", "before": ""}
        return tile | total | {"words": "so far"}
    return tile


def nothing_valid(table: pd.DataFrame) -> str:
    """A sentence on a run without any valid proposal; empty for other runs."""
    rows = table[table["metric"].str.startswith("reason/")]
    counts = rows.groupby("metric")["value"].sum().astype(int)
    counts.index = counts.index.str.removeprefix("reason/")
    proposed = int(counts.sum())
    if not proposed or counts.get("ok", 0):
        return ""
    common = counts.sort_values(ascending=False, kind="stable")
    shown = [
        f"{count} {name.replace('_', ' ')}" + (f" ({text})" if (text := meaning(str(name))) else "")
        for name, count in common.iloc[:3].items()
    ]
    more = f" and {len(common) - 3} more reasons" if len(common) > 3 else ""
    return (
        f"None of {proposed:,} proposals is a valid task, so no member learned to solve: "
        f"{', '.join(shown)}{more}."
    )
