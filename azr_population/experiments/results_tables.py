"""A recipe's numbers: the table of arms, and the curves behind its figures, as CSV and Markdown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from azr_population.diagnostics import Estimate, Series, band, difference, interval, series
from azr_population.diagnostics.takes import TAKES
from azr_population.experiments.recipe import Figure, Recipe, Row
from azr_population.runs import RunDirectory

Runs = Mapping[str, Sequence[RunDirectory]]
"""The runs of each arm, one per seed."""


@dataclass(frozen=True)
class Cell:
    """One arm in one row of the table."""

    values: tuple[float, ...]
    """One per seed that has any."""
    estimate: Estimate
    against: Estimate | None
    """The difference to the baseline arm (Welch); None for that arm itself."""


def curve(run: RunDirectory, name: str, of: str, steps: int) -> Series:
    """A diagnostic of a run up to `steps`: runs that went on longer are cut there."""
    return [(step, value) for step, value in series(run, name, of) if step <= steps]


def figure_curves(figure: Figure, runs: Runs, steps: int) -> dict[str, list[Series]]:
    """Line name -> a curve per seed; lines are arms, or arms by role. Empty curves are left out."""
    lines: dict[str, list[Series]] = {}
    for arm, own in runs.items():
        for of in figure.of:
            found = [curve(run, figure.series, of, steps) for run in own]
            if any(found):
                name = arm if len(figure.of) == 1 else f"{arm} {of}s"
                lines[name] = [one for one in found if one]
    return lines


def curves_csv(lines: Mapping[str, Sequence[Series]]) -> str:
    """line, step, the value of each seed, their mean and its 95% interval."""
    seeds = max((len(own) for own in lines.values()), default=0)
    header = ["line", "step", *(f"seed_{n}" for n in range(1, seeds + 1)), "mean", "low", "high"]
    rows: list[list[str]] = []
    for name, own in lines.items():
        by_step = [dict(one) for one in own]
        estimates = dict(band(own))
        for step in sorted({step for one in by_step for step in one}):
            values = [plain_number(one.get(step)) for one in by_step]
            estimate = estimates.get(step)
            bounds = (estimate.mean, estimate.low, estimate.high) if estimate else (None,) * 3
            missing = [""] * (seeds - len(values))
            rows.append([name, str(step), *values, *missing, *map(plain_number, bounds)])
    return to_csv(header, rows)


def cells(row: Row, recipe: Recipe, runs: Runs, steps: int) -> dict[str, Cell]:
    """The row's numbers by arm; arms of which nothing is known are left out."""
    taken: dict[str, tuple[float, ...]] = {}
    for arm, own in runs.items():
        found = [curve(run, row.series, row.of, steps) for run in own]
        each = (TAKES[row.take](one, steps) for one in found if one)
        values = tuple(value for value in each if not math.isnan(value))
        if values:
            taken[arm] = values
    baseline = recipe.baseline or next(iter(recipe.arms), "")
    return {
        arm: Cell(
            values,
            interval(values),
            difference(values, taken[baseline], paired=False)
            if arm != baseline and baseline in taken
            else None,
        )
        for arm, values in taken.items()
    }


def table_csv(recipe: Recipe, table: Mapping[Row, Mapping[str, Cell]]) -> str:
    """A line per row and arm, with the values of the seeds."""
    baseline = recipe.baseline or next(iter(recipe.arms), "")
    header = ["measure", "series", "take", "of", "arm", "seeds", "mean", "low", "high"]
    header += [f"minus_{baseline}", "minus_low", "minus_high", "values"]
    rows = []
    for row, own in table.items():
        for arm, cell in own.items():
            e, d = cell.estimate, cell.against
            rows.append(
                [row.label, row.series, row.take, row.of, arm, str(e.n)]
                + [plain_number(v) for v in (e.mean, e.low, e.high)]
                + [plain_number(v) for v in ((d.mean, d.low, d.high) if d else (None,) * 3)]
                + [" ".join(plain_number(value) for value in cell.values)]
            )
    return to_csv(header, rows)


def table_markdown(recipe: Recipe, table: Mapping[Row, Mapping[str, Cell]]) -> str:
    """The table for people: means with 95% intervals; bold where an arm differs from the baseline.

    Bold means that the 95% interval of the difference leaves out 0. The heads tell how many seeds
    there are, a cell where it rests on fewer.
    """
    arms = list(dict.fromkeys(arm for own in table.values() for arm in own))
    seeds = {arm: max(o[arm].estimate.n for o in table.values() if arm in o) for arm in arms}
    heads = [f"{arm} (n={seeds[arm]})" for arm in arms]
    lines = [f"| measure | {' | '.join(heads)} |", f"|---|{'---|' * len(arms)}"]
    for row, own in table.items():
        if own:
            shown = [_shown(own[arm], seeds[arm]) if arm in own else "-" for arm in arms]
            lines.append(f"| {row.label} | {' | '.join(shown)} |")
    missing = [row.label for row, own in table.items() if not own]
    if missing:
        lines += ["", f"Nothing is recorded of: {', '.join(missing)}."]
    return "\n".join(lines)


def _shown(cell: Cell, seeds: int) -> str:
    against = cell.against
    differs = against is not None and (against.low > 0.0 or against.high < 0.0)
    text = with_interval(cell.estimate)
    if cell.estimate.n < seeds:
        text += f" (n={cell.estimate.n})"
    return f"**{text}**" if differs else text


def with_interval(estimate: Estimate) -> str:
    """`0.412 [0.380, 0.444]`; a lone mean where there is no interval."""
    if math.isnan(estimate.low):
        return number(estimate.mean)
    return f"{number(estimate.mean)} [{number(estimate.low)}, {number(estimate.high)}]"


def number(value: float) -> str:
    """Three digits after the point, fewer for large numbers."""
    if math.isnan(value):
        return "-"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def plain_number(value: float | None) -> str:
    """Six digits for a CSV file; nothing where there is no number."""
    return "" if value is None or math.isnan(value) else f"{value:.6g}"


def to_csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """RFC 4180 with plain line ends."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
