"""A recipe's numbers: the table of arms, and the curves behind its figures, as CSV and Markdown."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from azr_population.experiments.hypotheses import LEVEL, Test, Values, holm_corrected, iqm, test
from azr_population.experiments.recipe import Figure, Recipe, TableRow
from azr_population.runs import RunDirectory
from azr_population.runs.diagnostics import Estimate, Series, band, interval, series
from azr_population.runs.diagnostics.takes import TAKES
from azr_population.runs.formatting import csv_text, markdown_table, plain_number

Runs = Mapping[str, Sequence[RunDirectory]]
"""The runs of each arm, one per seed."""


@dataclass(frozen=True)
class Cell:
    """One arm in one row of the table."""

    values: Values
    """One per seed that has any."""
    estimate: Estimate
    against: Test | None
    """The difference to the baseline arm; None for that arm itself."""
    corrected: float = math.nan
    """The p of that difference, corrected for all of the table; NaN where a primary hypothesis is
    about it."""


Table = Mapping[TableRow, Mapping[str, Cell]]


def curve(run: RunDirectory, name: str, of: str, steps: int) -> Series:
    """A diagnostic of a run up to `steps`: runs that went on longer are cut there."""
    return [(step, value) for step, value in series(run, name, of) if step <= steps]


def figure_curves(
    figure: Figure, runs: Runs, lengths: Mapping[str, int]
) -> dict[str, list[Series]]:
    """Line name -> a curve per seed, up to the arm's length in steps; lines are arms, or arms by
    role. Empty curves are left out."""
    lines: dict[str, list[Series]] = {}
    for arm, of_arm in runs.items():
        for of in figure.of:
            drawn = [curve(run, figure.series, of, lengths[arm]) for run in of_arm]
            if any(drawn):
                name = arm if len(figure.of) == 1 else f"{arm} {of}s"
                lines[name] = [points for points in drawn if points]
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
    return csv_text(header, rows)


def values_of(row: TableRow, runs: Runs, lengths: Mapping[str, int]) -> dict[str, Values]:
    """The row's number of every run, by arm and seed; what is not known is left out."""
    taken: dict[str, Values] = {}
    for arm, of_arm in runs.items():
        curves = {run.path.name: curve(run, row.series, row.of, lengths[arm]) for run in of_arm}
        each = {seed: TAKES[row.take](c, lengths[arm]) for seed, c in curves.items() if c}
        if known := {seed: value for seed, value in each.items() if not math.isnan(value)}:
            taken[arm] = known
    return taken


def make_table(recipe: Recipe, runs: Runs, lengths: Mapping[str, int]) -> Table:
    """All rows by arm; the differences that no primary hypothesis is about are one family."""
    baseline = baseline_of(recipe)
    primary = {(one.measure, one.arm, one.than) for one in recipe.primary}
    table: dict[TableRow, dict[str, Cell]] = {}
    for row in recipe.rows:
        taken = values_of(row, runs, lengths)
        table[row] = {
            arm: Cell(
                values,
                interval(list(values.values())),
                test(values, taken[baseline], recipe.paired)
                if arm != baseline and baseline in taken
                else None,
            )
            for arm, values in taken.items()
        }
    family = [
        (row, arm, cell.against)
        for row, of_row in table.items()
        for arm, cell in of_row.items()
        if cell.against and (row.label, arm, baseline) not in primary
    ]
    for (row, arm, _), p in zip(family, holm_corrected([t for _, _, t in family]), strict=True):
        table[row][arm] = replace(table[row][arm], corrected=p)
    return table


def baseline_of(recipe: Recipe) -> str:
    """The arm that the others are compared with."""
    return recipe.baseline or next(iter(recipe.arms), "")


def table_csv(recipe: Recipe, table: Table) -> str:
    """A line per row and arm, with the values of the seeds."""
    baseline = baseline_of(recipe)
    header = ["measure", "series", "take", "of", "arm", "seeds", "mean", "low", "high"]
    header += ["iqm", "iqm_low", "iqm_high", f"minus_{baseline}", "minus_low", "minus_high"]
    header += ["p", "p_permutation", "p_holm", "values", "paper"]
    rows = []
    for row, of_row in table.items():
        for arm, cell in of_row.items():
            tested = cell.against
            line = [row.label, row.series, row.take, row.of, arm, str(cell.estimate.n)]
            line += _numbers(cell.estimate) + _numbers(iqm(cell.values))
            line += _numbers(tested.estimate if tested else None)
            line += map(plain_number, (tested.p, tested.permutation) if tested else (None, None))
            line += [plain_number(cell.corrected)]
            line += [" ".join(map(plain_number, cell.values.values())), row.paper]
            rows.append(line)
    return csv_text(header, rows)


def _numbers(estimate: Estimate | None) -> list[str]:
    bounds = (estimate.mean, estimate.low, estimate.high) if estimate else (None,) * 3
    return [plain_number(value) for value in bounds]


def table_markdown(table: Table) -> str:
    """The table for people: means with 95% intervals; bold where an arm differs from the baseline
    after correction for the number of differences.

    Where there are seeds enough, the interquartile mean and its bootstrap interval stand below. The
    heads tell how many seeds there are, a cell where it rests on fewer.
    """
    arms = list(dict.fromkeys(arm for of_row in table.values() for arm in of_row))
    seeds = {arm: max(o[arm].estimate.n for o in table.values() if arm in o) for arm in arms}
    heads = [f"{arm} (n={seeds[arm]})" for arm in arms]
    told = any(row.paper for row in table)
    heads += ["the paper"] * told
    rows = [
        [row.label]
        + [_shown(of_row[arm], seeds[arm]) if arm in of_row else "-" for arm in arms]
        + [row.paper or "-"] * told
        for row, of_row in table.items()
        if of_row
    ]
    missing = [row.label for row, of_row in table.items() if not of_row]
    nothing = f"\n\nNothing is recorded of: {', '.join(missing)}." if missing else ""
    return markdown_table(["measure", *heads], rows) + nothing


def _shown(cell: Cell, seeds: int) -> str:
    text = with_interval(cell.estimate)
    if cell.estimate.n < seeds:
        text += f" (n={cell.estimate.n})"
    if cell.corrected < LEVEL:
        text = f"**{text}**"
    if middle := iqm(cell.values):
        text += f"<br>IQM {with_interval(middle)}"
    return text


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
