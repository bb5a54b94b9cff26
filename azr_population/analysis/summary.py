"""What changed in a run: the tiles at the top of its page, and sentences that say the same."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from azr_population.analysis.changes import Change
from azr_population.analysis.html import figure
from azr_population.analysis.statistics import tenth
from azr_population.domains.measure import PROPOSERS, SOLVERS, Measure
from azr_population.printable import duration
from azr_population.runs.meanings import meaning
from azr_population.runs.records import (
    Record,
    by_number,
    conservative,
    metrics_of_members,
    number,
    role_of,
)

Points = list[tuple[float, float]]


class Tile(NamedTuple):
    """A figure at the top of the page; `low` and `high` bound the change, None without interval."""

    name: str
    title: str
    line: str
    """Whose it is: a role, `mean`, or nothing."""
    percent: bool
    unit: str
    grows: bool
    points: Points
    first: float
    last: float
    low: float | None = None
    high: float | None = None

    @property
    def colour(self) -> str:
        """A class of the page's style."""
        return {"mean": "student", "": "ink"}.get(self.line, self.line)

    @property
    def kind(self) -> str:
        """How `figure` writes it."""
        return "percent" if self.percent else "number"

    @property
    def within_noise(self) -> bool | None:
        """Whether the interval of the change holds zero; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low <= 0.0 <= self.high

    @property
    def value(self) -> str:
        """What stands large on the tile."""
        return f"{round(self.last):,}" if self.grows else figure(self.last, self.kind)

    @property
    def before(self) -> str:
        """The first value, where the change is told; else empty."""
        told = not self.grows and self.within_noise is not True
        return f"{figure(self.first, self.kind)} → " if told else ""

    @property
    def change(self) -> str:
        """The change in a few words."""
        if self.grows:
            return "so far"
        if self.low is None or self.high is None:
            return f"{self._signed(self.last - self.first)}, interval unknown"
        span = f"[{self._signed(self.low, '')}, {self._signed(self.high, '')}]"
        if self.within_noise:
            return f"within noise: {span}"
        return f"{self._signed(self.last - self.first)} {span}"

    def _signed(self, value: float, unit: str | None = None) -> str:
        scale, own = (100.0, " points") if self.percent else (1.0, "")
        return f"{scale * value:+.1f}".replace("-", "\u2212") + (own if unit is None else unit)

    @property
    def path(self) -> str:
        """The line as points of an SVG of 100 by 30."""
        values = [value for _, value in self.points]
        low, high = min(values), max(values)
        least = 0.1 if self.percent else 1e-9
        middle, half = (low + high) / 2, max(high - low, least) / 2
        last = self.points[-1][0] or 1
        return " ".join(
            f"{100 * step / last:.1f},{15 - 13 * (value - middle) / half:.1f}"
            for step, value in self.points
        )


_TILES = {
    "solve_rate": ("Solve rate", SOLVERS),
    "eval/greedy": ("Held-out tasks", ("",)),
    "valid_frac": ("Valid proposals", PROPOSERS),
}


def tiles_of(
    table: pd.DataFrame,
    changes: Mapping[str, Change],
    last: int,
    size: Measure | None,
) -> list[Tile]:
    """The figures at the top of the page; none for what has fewer than two values."""
    wanted = {name: (*known, True, "") for name, known in _TILES.items()}
    if size:
        wanted[size.name] = (size.title, size.whose, False, size.unit or size.title)
    tiles = []
    for name, (title, roles, percent, unit) in wanted.items():
        points, whose = _points(table, name, roles)
        if len(points) < 2:
            continue
        known = changes.get(name)
        span = tenth(last)
        if name == "eval/greedy":
            first, late = points[0][1], points[-1][1]
        else:
            first = _mean([value for step, value in points if step <= span])
            late = _mean([value for step, value in points if step > last - span])
        low = high = None
        if known and math.isfinite(known.difference.low):
            first, late = known.first, known.last
            low, high = known.difference.low, known.difference.high
        whose = whose or "mean"
        if math.isfinite(first) and math.isfinite(late):
            tiles.append(
                Tile(name, title, whose, percent, unit, False, points, first, late, low, high)
            )
    points, _ = _points(table, "coverage", PROPOSERS)
    if len(points) > 1:
        tiles.append(
            Tile("coverage", "Coverage (cells)", "", False, "", True, points, 0, points[-1][1])
        )
    return tiles


def _points(table: pd.DataFrame, metric: str, roles: Sequence[str]) -> tuple[Points, str]:
    rows = table[(table["metric"] == metric) & table["member"].isna()]
    for role in roles:
        found = rows[rows["role"].isna()] if role == "" else rows[rows["role"] == role]
        if len(found):
            return list(zip(found["step"].astype(float), found["value"], strict=True)), role
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


def changed(roles: Sequence[str], steps: int, tiles: Sequence[Tile]) -> list[str]:
    """Sentences on what changed; empty if no tile tells of it.

    Args:
        roles: the members' roles, one item per member.
        steps: the last recorded step.
        tiles: as `charts.headline_tiles` gives them.
    """
    told = [(_subject(tile, roles), tile) for tile in tiles if _is_told(tile)]
    if not told or steps < 2:
        return ["One step is recorded: nothing can have changed yet."] if steps == 1 else []
    width = tenth(steps)
    early, late = ("step", "") if width == 1 else (f"{width} steps", f" {width}")
    span = f"From the first {early} to the last{late}"
    sure = [f"{who} {_moved(tile)}" for who, tile in told if tile.within_noise is False]
    within = [f"{who} ({_difference(tile)})" for who, tile in told if tile.within_noise]
    unknown = [f"{who} ({_pair(tile)})" for who, tile in told if tile.within_noise is None]
    sentences = []
    if sure:
        sentences.append(f"{span}, {listed(sure)}.")
    if within and sure:
        sentences.append(f"Within noise: {listed(within)}.")
    elif within:
        sentences.append(f"{span}, every change is within noise: {listed(within)}.")
    if unknown:
        sentences.append(f"{span}, with no interval for lack of records: {listed(unknown)}.")
    if sure or within:
        sentences.append(_how_to_read([tile for _, tile in told]))
    return [" ".join(sentences), *_short(steps, tiles)]


def listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


_SUBJECTS = {
    "solve_rate": "the {whose} solve rate",
    "eval/greedy": "the {mean}score on held-out tasks",
    "valid_frac": "the share of valid proposals",
}
"""The changes told, by the measure; beside them that of the size, whose tile has a unit."""


def _is_told(tile: Tile) -> bool:
    return tile.name in _SUBJECTS or bool(tile.unit)


def _subject(tile: Tile, roles: Sequence[str]) -> str:
    role = tile.line
    whose = f"{role}s'" if roles.count(role) > 1 else f"{role}'s"
    mean = "mean " if role == "mean" else ""
    return _SUBJECTS.get(tile.name, "the size of a program").format(whose=whose, mean=mean)


def _moved(tile: Tile) -> str:
    """`rose from 30% to 42% (+12.0 points [8.1, 15.9])`."""
    way = "rose" if tile.last > tile.first else "fell"
    first, last = (figure(value, tile.kind) for value in (tile.first, tile.last))
    return f"{way} from {first} to {last} ({_difference(tile)})"


def _pair(tile: Tile) -> str:
    first, last = (figure(value, tile.kind) for value in (tile.first, tile.last))
    return f"{first}, then {last}"


def _difference(tile: Tile) -> str:
    scale, unit = (100.0, "points") if tile.percent else (1.0, tile.unit)
    bounds = (tile.last - tile.first, tile.low or 0.0, tile.high or 0.0)
    change, low, high = (scale * value for value in bounds)
    return f"{change:+.1f} {unit} [{low:+.1f}, {high:+.1f}]"


def _how_to_read(tiles: Sequence[Tile]) -> str:
    has_eval = any(tile.name == "eval/greedy" for tile in tiles)
    held_out = " (held-out tasks: the first eval against the last)" if has_eval else ""
    return f"In brackets are 95% intervals over the tasks of this run{held_out}."


def _short(steps: int, tiles: Sequence[Tile]) -> list[str]:
    """What a short run can show."""
    if steps > SHORT:
        return []
    solving = next((tile for tile in tiles if tile.name == "solve_rate"), None)
    least = ""
    if solving and solving.within_noise is not None:
        half = 100.0 * ((solving.high or 0.0) - (solving.low or 0.0)) / 2.0
        least = f", and of the solve rate only changes of more than about {half:.0f} points"
    return [
        f"{steps} steps are few: they show that all parts work together{least}. Only runs with "
        "other seeds show whether a change comes back."
    ]


_NOTHING = "No solve rate, validity or size of program is recorded."


def summary(
    name: str,
    steps: int | None,
    metrics: Sequence[Record],
    matches: Sequence[Record],
    lineage: Sequence[Record],
    tiles: Sequence[Tile],
    wrong: str = "",
) -> list[str]:
    """What was played, what changed, who came out on top: a paragraph each.

    What changed is taken from `tiles`, so that sentences and tiles show the same numbers.
    """
    if not metrics:
        known = f"{_count(len(matches), 'match')} and {_count(len(lineage), 'replacement')} are"
        if matches or lineage:
            return [
                f"No step of the run {name} is in its metrics.jsonl: most curves and "
                "the members are missing.",
                f"{known} recorded elsewhere, and shown.",
            ]
        return [
            f"The run {name} has not finished a step yet.",
            "The page fills as steps are recorded: write it again later.",
        ]
    members = metrics_of_members(metrics[-1])
    last = metrics[-1]["step"]
    roles = list(map(role_of, members))
    return [
        _played(name, steps, metrics, matches, lineage),
        *([wrong] if wrong else changed(roles, last, tiles) or [_NOTHING]),
        _leading(members, {str(c["child"]) for c in lineage if c.get("step") == last}),
    ]


def _played(
    name: str,
    steps: int | None,
    metrics: Sequence[Record],
    matches: Sequence[Record],
    lineage: Sequence[Record],
) -> str:
    roles = list(map(role_of, metrics_of_members(metrics[-1])))
    who = " and ".join(_count(roles.count(role), role) for role in dict.fromkeys(roles))
    took = duration(math.fsum(number(step.get("time/step")) or 0.0 for step in metrics))
    of = f" of {steps}" if steps else ""
    proposed = sum(int(number(match.get("proposed")) or 0) for match in matches)
    valid = sum(int(number(match.get("valid")) or 0) for match in matches)
    replaced = _count(len(lineage), "member") if lineage else "nobody"
    replaced += " were" if len(lineage) > 1 else " was"
    evals = any("eval/greedy" in step for step in metrics)
    took += " with the evals" if evals else ""
    tasks = ""
    if proposed:
        share = figure(valid / proposed, "percent")
        tasks = f", {proposed:,} tasks were proposed and {share} of them valid"
    return (
        f"In {name}, {who or 'nobody'} played {metrics[-1]['step']}{of} steps in {took}{tasks}, "
        f"and {replaced} replaced."
    )


def _leading(members: Mapping[str, Record], newborn: set[str]) -> str:
    """Who leads each role; a role with one member has only a rating to report. Those born at the
    last step have not played yet, and lead nobody."""
    leaders, alone = [], []
    for role in ("teacher", "student"):
        rated = [
            (value, name, member)
            for name, member in members.items()
            if role_of(name) == role
            and name not in newborn
            and (value := conservative(member)) is not None
        ]
        if len(rated) > 1:
            _, name, member = max(rated, key=lambda row: (row[0], row[1]))
            leaders.append(
                f"{name} leads the {role}s (mu {member['mu']:.1f}, sigma {member['sigma']:.1f}, "
                f"generation {member.get('generation', 0)})"
            )
        elif rated:
            _, _, member = rated[0]
            alone.append(f"the {role} is rated mu {member['mu']:.1f}, sigma {member['sigma']:.1f}")
    if not leaders and not alone:
        return "There are no ratings, since a single agent meets nobody but itself."
    text = f"{'by mu - 3 sigma, ' if leaders else ''}{listed([*leaders, *alone])}"
    unplayed = sorted(newborn & set(members), key=by_number)
    if unplayed:
        many = len(unplayed) > 1
        text += (
            f"; {listed(unplayed)} {'were' if many else 'was'} born at the end of the last step "
            f"and {'have' if many else 'has'} not played yet"
        )
    return f"{text[0].upper()}{text[1:]}."


def _count(count: int, noun: str) -> str:
    plural = {"match": "matches"}.get(noun, f"{noun}s")
    return f"{count} {noun if count == 1 else plural}"
