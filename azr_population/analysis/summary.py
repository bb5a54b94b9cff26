"""What changed in a run: the tiles at the top of its page, and the same as lines of text."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from azr_population.analysis.changes import Change
from azr_population.analysis.html import figure
from azr_population.analysis.statistics import Estimate, interval_text, tenth
from azr_population.domains.metric import PROPOSERS, SOLVERS, Metric
from azr_population.runs.meanings import meaning
from azr_population.runs.records import Record, conservative, metrics_of_members, number, role_of

Points = list[tuple[float, float]]


class Tile(NamedTuple):
    """A figure at the top of the page; the interval of `difference` is NaN where it is unknown."""

    metric: Metric
    role: str
    """Whose it is: a role, `mean`, or nothing."""
    points: Points
    first: float
    last: float
    difference: Estimate

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
        return f"{round(self.last):,}" if self.grows else self._figure(self.last)

    @property
    def before(self) -> str:
        """The first value, where the tile shows a change beyond noise; else empty."""
        shown = not self.grows and not self.difference.low <= 0.0 <= self.difference.high
        return f"{self._figure(self.first)} → " if shown else ""

    @property
    def change(self) -> str:
        """The change in a few words."""
        test = self.difference
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
        ends = f"{self._figure(self.first)} to {self._figure(self.last)}"
        return f"{self.metric.title}{role}: {ends}, {self.change}"

    def _figure(self, value: float) -> str:
        return figure(value, "percent" if self.metric.percent else "number")

    @property
    def path(self) -> str:
        """The line as points of an SVG of 100 by 30."""
        values = [value for _, value in self.points]
        low, high = min(values), max(values)
        least = 0.1 if self.metric.percent else 1e-9
        middle, half = (low + high) / 2, max(high - low, least) / 2
        last = self.points[-1][0] or 1
        return " ".join(
            f"{100 * step / last:.1f},{15 - 13 * (value - middle) / half:.1f}"
            for step, value in self.points
        )


_TILES = (
    Metric("solve_rate", "Solve rate", percent=True, roles=SOLVERS),
    Metric("eval/greedy", "Held-out tasks", percent=True, roles=("",)),
    Metric("valid_frac", "Valid proposals", percent=True),
)


def tiles_of(
    table: pd.DataFrame, changes: Mapping[str, Change], last: int, size: Metric | None
) -> list[Tile]:
    """The figures at the top of the page; none for what has fewer than two values."""
    tiles = []
    span = tenth(last)
    for metric in (*_TILES, *([size] if size else [])):
        points, role = _points(table, metric.name, metric.roles)
        if len(points) < 2:
            continue
        first, late = points[0][1], points[-1][1]
        if metric.name != "eval/greedy":
            first = _mean([value for step, value in points if step <= span])
            late = _mean([value for step, value in points if step > last - span])
        difference = Estimate(late - first, math.nan, math.nan, (1,))
        known = changes.get(metric.name)
        if known and math.isfinite(known.difference.low):
            first, late, difference = known
        if math.isfinite(first) and math.isfinite(late):
            tiles.append(Tile(metric, role or "mean", points, first, late, difference))
    points, _ = _points(table, "coverage", PROPOSERS)
    if len(points) > 1:
        end = points[-1][1]
        metric = Metric("coverage", "Coverage (cells)")
        tiles.append(Tile(metric, "", points, 0.0, end, Estimate(end, math.nan, math.nan, (1,))))
    return tiles


def _points(table: pd.DataFrame, metric: str, roles: Sequence[str]) -> tuple[Points, str]:
    rows = table[(table["metric"] == metric) & table["member"].isna()]
    for role in roles:
        of_role = rows[rows["role"].isna()] if role == "" else rows[rows["role"] == role]
        if len(of_role):
            return list(zip(of_role["step"].astype(float), of_role["value"], strict=True)), role
    return [], ""


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


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
        f"None of {proposed:,} proposals is a valid task, so nobody learned to solve: "
        f"{', '.join(shown)}{more}."
    )


SHORT = 40
"""Steps up to which a run is called short: a tenth of them are four steps at most."""


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


def summary(
    metrics: Sequence[Record], matches: Sequence[Record], lineage: Sequence[Record]
) -> dict[str, Any]:
    """What the page's words are filled with: `steps` played, `seconds`, `proposed` and `valid`
    tasks, `replaced` members, how many of each role (`roles`), whether there were `evals`, and the
    `leaders` of the roles by mu - 3 sigma. Those born at the last step lead nobody: they have not
    played yet."""
    last = metrics[-1] if metrics else {}
    members = metrics_of_members(last)
    newborn = {str(child["child"]) for child in lineage if child.get("step") == last.get("step")}
    leaders: dict[str, dict[str, Any]] = {}
    for name, member in members.items():
        value, role = conservative(member), role_of(name)
        if value is not None and name not in newborn:
            best = leaders.get(role)
            if best is None or value > best["value"]:
                leaders[role] = {**member, "name": name, "value": value}
    return {
        "steps": last.get("step", 0),
        "seconds": math.fsum(number(step.get("time/step")) or 0.0 for step in metrics),
        "proposed": sum(int(number(match.get("proposed")) or 0) for match in matches),
        "valid": sum(int(number(match.get("valid")) or 0) for match in matches),
        "matches": len(matches),
        "replaced": len(lineage),
        "roles": Counter(map(role_of, members)),
        "evals": any("eval/greedy" in step for step in metrics),
        "leaders": leaders,
    }
