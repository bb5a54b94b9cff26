"""What changed in the course of one run, each change with its 95% interval: the tiles at the top of
its page, and the same as lines of text.

The first tenth of the steps is set against the last, and the first eval against the last. The
intervals hold the chance in which tasks and answers were drawn. They say nothing about other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from azr_population.analysis.frame import curve
from azr_population.analysis.html import figure
from azr_population.analysis.statistics import (
    Estimate,
    compare,
    difference_of_shares,
    interval_text,
    tenth,
)
from azr_population.domains.metric import SOLVERS, Metric
from azr_population.runs.directory import RunDirectory
from azr_population.runs.meanings import meaning
from azr_population.runs.records import Record, domain_of, number

SHORT = 40
"""Steps up to which a run is called short: a tenth of them are four steps at most."""
_TILES = (
    Metric("solve_rate", "Solve rate", percent=True, roles=SOLVERS),
    Metric("eval/greedy", "Held-out tasks", percent=True, roles=()),
    Metric("valid_frac", "Valid proposals", percent=True),
)


class Change(NamedTuple):
    """A metric early and late in a run, and the difference (late minus early) with its interval."""

    first: float
    last: float
    difference: Estimate


def measured_changes(run: RunDirectory, last: int) -> dict[str, Change]:
    """By metric: `solve_rate`, the size, `valid_frac`, `eval/greedy`, as far as recorded up to step
    `last`; nothing for a run of one step.

    The solve rate and the size are means over valid tasks (Welch's interval; a task is one
    observation, since its attempts depend on each other), the valid share is of proposals
    (Newcombe's), the eval is paired by its tasks, each scored by the mean over members.
    """
    if last < 2:
        return {}
    changes: dict[str, Change] = {}
    names = ["solve_rate", *(measure.name for measure in domain_of(run).measures[:1])]
    early, late = _ends(run.tasks(), names, last)
    for name in names:
        a, b = early[name].dropna(), late[name].dropna()
        if len(a) and len(b):
            test = compare(b.tolist(), a.tolist(), paired=False, permute=False)
            changes[name] = Change(a.mean(), b.mean(), test)
    before, after = (
        (int(end["valid"].sum()), int(end["proposed"].sum()))
        for end in _ends(run.matches(), ["valid", "proposed"], last)
    )
    if 0 <= before[0] <= before[1] > 0 and 0 <= after[0] <= after[1] > 0:
        test = difference_of_shares(after, before)
        changes["valid_frac"] = Change(before[0] / before[1], after[0] / after[1], test)
    scores: dict[int, list[list[float]]] = {}
    for row in run.evals():
        if row.get("greedy"):
            scores.setdefault(row["step"], []).append(row["greedy"])
    if len(scores) > 1:
        a, b = (pd.DataFrame(scores[pick(scores)]).astype(float).mean() for pick in (min, max))
        if len(a) == len(b):
            test = compare(b.tolist(), a.tolist(), paired=True, permute=False)
            changes["eval/greedy"] = Change(a.mean(), b.mean(), test)
    return changes


def _ends(rows: Iterable[Record], names: Sequence[str], last: int) -> list[pd.DataFrame]:
    """These columns of the records of the first and of the last tenth of the steps."""
    found = [(row["step"], *map(number, map(row.get, names))) for row in rows]
    table = pd.DataFrame(found, columns=["step", *names]).astype(float)
    step, width = table["step"], tenth(last)
    return [table[step <= width], table[(step > last - width) & (step > width) & (step <= last)]]


class Tile(NamedTuple):
    """A figure at the top of the page; the interval of `difference` is NaN where it is unknown."""

    metric: Metric
    role: str
    """Whose it is: a role, or the `mean`; empty for the run's."""
    points: pd.Series
    change: Change

    @property
    def colour(self) -> str:
        """A class of the page's style."""
        return {"mean": "student", "": "ink"}.get(self.role, self.role)

    @property
    def grows(self) -> bool:
        """It can only grow, so its last value says all."""
        return self.metric.name == "coverage"

    @property
    def value(self) -> str:
        """What stands large on the tile."""
        return f"{round(self.change.last):,}" if self.grows else self._figure(self.change.last)

    @property
    def before(self) -> str:
        """The first value, where the tile shows a change beyond noise; else empty."""
        test = self.change.difference
        moved = not self.grows and not test.low <= 0.0 <= test.high
        return f"{self._figure(self.change.first)} → " if moved else ""

    @property
    def words(self) -> str:
        """The change in a few words."""
        test = self.change.difference
        text = interval_text(test, self.metric.percent, True).replace("-", "\u2212")
        if self.grows:
            return "so far"
        if math.isnan(test.low):
            return f"{text}, interval unknown"
        return f"within noise: {text}" if test.low <= 0.0 <= test.high else text

    @property
    def line(self) -> str:
        """`Solve rate (student): 30% to 42%, +12.0 points [+8.1, +15.9]`."""
        role = f" ({self.role})" if self.role else ""
        ends = f"{self._figure(self.change.first)} to {self._figure(self.change.last)}"
        return f"{self.metric.title}{role}: {ends}, {self.words}"

    def _figure(self, value: float) -> str:
        return figure(value, self.metric.percent)

    @property
    def path(self) -> str:
        """The line as points of an SVG of 100 by 30."""
        low, high = self.points.min(), self.points.max()
        middle, half = (low + high) / 2, max(high - low, 0.1 if self.metric.percent else 1e-9) / 2
        last = self.points.index[-1] or 1
        return " ".join(
            f"{100 * step / last:.1f},{15 - 13 * (value - middle) / half:.1f}"
            for step, value in self.points.items()
        )


def tiles_of(
    table: pd.DataFrame, changes: Mapping[str, Change], last: int, size: Metric | None
) -> list[Tile]:
    """The figures at the top of the page; none for what has fewer than two values."""
    tiles = []
    coverage = Metric("coverage", "Coverage (cells)")
    for metric in (*_TILES, *([size] if size else []), coverage):
        lines = {role: curve(table, metric.name, (role,)) for role in metric.roles}
        lines |= {} if metric.roles else {"mean": curve(table, metric.name)}
        role, points = next(
            ((r, line) for r, line in lines.items() if len(line)), ("", pd.Series())
        )
        if len(points) < 2:
            continue
        ends = points.iloc[[0]], points.iloc[[-1]]
        if not metric.is_eval and metric != coverage:
            width = tenth(last)
            ends = points[points.index <= width], points[points.index > last - width]
        first, late = (float(end.mean()) for end in ends)
        change = Change(first, late, Estimate(late - first, math.nan, math.nan, (1,)))
        measured = changes.get(metric.name)
        if measured and math.isfinite(measured.difference.low):
            change = measured
        if math.isfinite(change.first) and math.isfinite(change.last):
            tiles.append(Tile(metric, "" if metric == coverage else role, points, change))
    return tiles


def nothing_valid(table: pd.DataFrame) -> str:
    """What is wrong with a run that has no valid proposal; empty for one that has, or made none."""
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


def changed(steps: int, tiles: Sequence[Tile]) -> list[str]:
    """Lines on what changed up to the last recorded step; empty if no tile shows a change."""
    moving = [tile for tile in tiles if not tile.grows]
    if steps < 2 or not moving:
        return ["One step is recorded: nothing can have changed yet."] * (steps == 1)
    width = tenth(steps)
    ends = "first step to the last" if width == 1 else f"first {width} steps to the last {width}"
    lines = [
        f"From the {ends} (held-out tasks: first eval to last), with 95% intervals over the tasks "
        "of this run:",
        *(tile.line for tile in moving),
    ]
    if steps <= SHORT:
        lines.append(
            f"{steps} steps are few: they show that all parts work together. Only runs with other "
            "seeds show whether a change comes back."
        )
    return lines
