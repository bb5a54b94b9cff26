"""A recipe's numbers: one per run and row, their means over seeds, and the tests between arms.

A seed is one observation. The hypotheses are tested as they are written; all other differences to
the baseline are one family, corrected by Holm (1979): of so many some would exclude 0 by luck.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from azr_population.analysis import frame
from azr_population.analysis.metrics import all_metrics
from azr_population.analysis.recipes import Hypothesis, Recipe, TableRow
from azr_population.analysis.statistics import (
    LEVEL,
    REDUCERS,
    Estimate,
    compare,
    holm,
    interquartile_mean,
)
from azr_population.runs.records import ROLES

Tables = Mapping[str, Mapping[str, pd.DataFrame]]
"""arm -> seed -> the tidy table of a run."""
Samples = Mapping[str, Mapping[str, float]]
"""arm -> seed -> the number of a row."""


def curve(table: pd.DataFrame, name: str, role: str = "") -> pd.Series:
    """A metric of one run over its steps; `role` as in `TableRow`. Empty if it is not recorded."""
    if role == "mean":
        curves = [points for role in ROLES if len(points := frame.curve(table, name, (role,)))]
        return pd.concat(curves, axis=1).mean(axis=1) if curves else pd.Series(dtype=float)
    if role:
        return frame.curve(table, name, (role,))
    # Not declared: a stratum of the eval, or a metric of a domain that does not ship.
    metric = all_metrics().get(name)
    return frame.curve(table, name, ROLES) if metric is None else frame.curve(table, metric)


@dataclass(frozen=True)
class Cell:
    """One arm in one row."""

    values: Mapping[str, float]
    """By seed."""
    estimate: Estimate
    middle: Estimate | None
    """The interquartile mean, of five seeds or more."""
    against: Estimate | None
    """The difference to the baseline; None for that arm itself."""
    corrected: float
    """The p of that difference after Holm's correction for the table, or of the hypothesis that is
    about it."""
    differs: bool
    """Whether that difference is shown: p < .05 after correction, or by the hypothesis' test."""


@dataclass(frozen=True)
class Decision:
    """A hypothesis and what came out; `test` is None where an arm has no value."""

    hypothesis: Hypothesis
    test: Estimate | None
    verdict: str
    p: float
    """Corrected for the other hypotheses, unless all have to hold together."""


@dataclass(frozen=True)
class Results:
    """All of a recipe's numbers."""

    recipe: Recipe
    cells: Mapping[TableRow, Mapping[str, Cell]]
    answers: Sequence[Decision]


def results_of(recipe: Recipe, tables: Tables, lengths: Mapping[str, int]) -> Results:
    """The numbers of the runs in `tables` that have come to their arm's length in steps."""
    samples = {row: _samples(row, recipe, tables, lengths) for row in recipe.table}
    answers = _answers(recipe, samples)
    decided = {
        (one.hypothesis.row, one.hypothesis.arm): (one.p, one.verdict in ("shown", "refuted"))
        for one in answers
        if one.hypothesis.than == recipe.baseline
    }
    tests = {
        (row, arm): compare(by_seed, of_row[recipe.baseline], recipe.paired, permute=False)
        for row, of_row in samples.items()
        for arm, by_seed in of_row.items()
        if arm != recipe.baseline and recipe.baseline in of_row
    }
    family = [key for key in tests if (key[0].label, key[1]) not in decided]
    corrected = dict(zip(family, holm([tests[key].p for key in family]), strict=True))

    def cell(row: TableRow, arm: str, by_seed: Mapping[str, float]) -> Cell:
        p = corrected.get((row, arm), math.nan)
        p, differs = decided.get((row.label, arm), (p, p < LEVEL))
        mean = compare(by_seed, None, False, permute=False)
        return Cell(by_seed, mean, interquartile_mean(by_seed), tests.get((row, arm)), p, differs)

    cells = {
        row: {arm: cell(row, arm, by_seed) for arm, by_seed in of_row.items()}
        for row, of_row in samples.items()
    }
    return Results(recipe, cells, answers)


def _samples(row: TableRow, recipe: Recipe, tables: Tables, lengths: Mapping[str, int]) -> Samples:
    """The row's number of every run; what is not known is left out."""
    samples: dict[str, dict[str, float]] = {}
    for arm, of_arm in tables.items():
        for seed, table in of_arm.items():
            points = curve(table[table["step"] <= lengths[arm]], row.metric, row.role)
            value = REDUCERS[row.reduce](points, lengths[arm]) if len(points) else math.nan
            if table["step"].max() >= lengths[arm] and not math.isnan(value):
                samples.setdefault(arm, {})[seed] = value
    if not row.ratio:
        return samples
    base = samples.get(recipe.baseline, {})
    return {
        arm: {seed: value / base[seed] for seed, value in by_seed.items() if seed in base}
        for arm, by_seed in samples.items()
    }


def _answers(recipe: Recipe, samples: Mapping[TableRow, Samples]) -> list[Decision]:
    """The hypotheses tested. One of several is tested at Bonferroni's level, which has intervals;
    together they are tested at the full one."""
    tested: list[tuple[Hypothesis, Estimate | None, str]] = []
    for hypothesis in recipe.hypotheses:
        of_row = samples[recipe.row(hypothesis.row)]
        a, b = of_row.get(hypothesis.arm), of_row.get(hypothesis.than)
        if not a or (hypothesis.than and not b):
            tested.append((hypothesis, None, "not decided: nothing was measured"))
            continue
        level = hypothesis.looks.get(min(len(a), len(b or a)), LEVEL)
        share = 1 if recipe.together else len(recipe.hypotheses)
        test = compare(a, b, recipe.paired, level / share, hypothesis.margin)
        tested.append((hypothesis, test, verdict(hypothesis, test)))
    p = [test.p if test else math.nan for _, test, _ in tested]
    corrected = p if recipe.together else holm(p)
    return [Decision(*parts, value) for parts, value in zip(tested, corrected, strict=True)]


def verdict(hypothesis: Hypothesis, test: Estimate) -> str:
    """`shown`, `refuted`, `not shown`, or why it is `not decided`."""
    if hypothesis.looks and test.n not in hypothesis.looks:
        planned = ", ".join(map(str, hypothesis.looks))
        return f"not decided: tests are planned at {planned} seeds, here are {test.n}"
    if math.isnan(test.low):
        return "not decided: one seed has no interval"
    if test.low > hypothesis.margin:
        return "shown"
    return "refuted" if test.high < hypothesis.margin else "not shown"


def frame_of(results: Results) -> pd.DataFrame:
    """A line per row and arm: means, intervals, tests and the values of the seeds."""
    lines: list[dict[str, Any]] = [
        {"row": row.label, "metric": row.metric, "reduce": row.reduce, "role": row.role}
        | {"arm": arm, "n": cell.estimate.n}
        | _columns("", cell.estimate)
        | _columns("iqm_", cell.middle)
        | _columns(f"minus_{results.recipe.baseline}_", cell.against)
        | {"p": cell.against.p if cell.against else math.nan, "p_corrected": cell.corrected}
        | {"values": " ".join(f"{value:.6g}" for value in cell.values.values())}
        | {"paper": row.paper}
        for row, of_row in results.cells.items()
        for arm, cell in of_row.items()
    ]
    return pd.DataFrame(lines)


def hypotheses_frame(answers: Sequence[Decision]) -> pd.DataFrame:
    """A line per hypothesis."""
    return pd.DataFrame(
        [
            one.hypothesis.model_dump(exclude={"looks"})
            | {"n": one.test.n if one.test else 0}
            | _columns("", one.test)
            | {"confidence": 1 - one.test.level if one.test else math.nan, "p": one.p}
            | {"p_permutation": one.test.permutation if one.test else None}
            | {"verdict": one.verdict}
            for one in answers
        ]
    )


def _columns(prefix: str, test: Estimate | None) -> dict[str, float]:
    return {f"{prefix}{k}": getattr(test, k) if test else math.nan for k in ("mean", "low", "high")}
