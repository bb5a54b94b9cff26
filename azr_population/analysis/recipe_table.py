"""A recipe's numbers: one per run and row, their means over seeds, and the tests between arms.

A seed is one observation. The hypotheses are tested as they are written; all other differences to
the baseline are one family, corrected by Holm (1979): of so many some would exclude 0 by luck.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from azr_population.analysis import frame
from azr_population.analysis.metrics import all_metrics
from azr_population.analysis.recipes import Hypothesis, Recipe
from azr_population.analysis.statistics import (
    LEVEL,
    NOTHING,
    REDUCERS,
    Estimate,
    compare,
    holm,
    interquartile_mean,
    interval,
    permutation_p,
)
from azr_population.runs.records import ROLES

Tables = Mapping[str, Mapping[str, pd.DataFrame]]
"""arm -> seed -> the tidy table of a run, without its members."""
Samples = Mapping[str, Mapping[str, Mapping[str, float]]]
"""label of a row -> arm -> seed -> its number."""


def curve(table: pd.DataFrame, name: str, role: str = "") -> pd.Series:
    """A metric of one run over its steps; `role` as in `TableRow`. Empty if it is not recorded."""
    if role == "mean":
        curves = [points for role in ROLES if len(points := frame.curve(table, name, (role,)))]
        return pd.concat(curves, axis=1).mean(axis=1) if curves else pd.Series(dtype=float)
    # Not declared: a stratum of the eval, or a metric of a domain that does not ship.
    return frame.curve(table, all_metrics().get(name, name), (role,) if role else ())


def results_of(
    recipe: Recipe, tables: Tables, lengths: Mapping[str, int]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table (a line per row and arm) and the tested hypotheses (a line each) of the runs that
    have come to their arm's length in steps."""
    samples = _samples(recipe, tables, lengths)
    hypotheses = _tested(recipe, samples)
    return _table(recipe, samples, hypotheses), hypotheses


def _samples(recipe: Recipe, tables: Tables, lengths: Mapping[str, int]) -> Samples:
    """The number of every row and run that has come to its arm's length in steps."""
    samples: dict[str, dict[str, dict[str, float]]] = {label: {} for label in recipe.rows}
    for label, row in recipe.rows.items():
        for arm, of_arm in tables.items():
            for seed, table in of_arm.items():
                points = curve(table[table["step"] <= lengths[arm]], row.metric, row.role)
                value = REDUCERS[row.reduce](points, lengths[arm]) if len(points) else math.nan
                if table["step"].max() >= lengths[arm] and not math.isnan(value):
                    samples[label].setdefault(arm, {})[seed] = value
        if row.ratio:
            base = samples[label].get(recipe.baseline, {})
            samples[label] = {
                arm: {seed: value / base[seed] for seed, value in values.items() if seed in base}
                for arm, values in samples[label].items()
            }
    return samples


def _tested(recipe: Recipe, samples: Samples) -> pd.DataFrame:
    """A line per hypothesis: what it says, its test and the verdict. One of several is tested at
    Bonferroni's level, which has intervals; together they are tested at the full one."""
    lines: list[dict[str, Any]] = []
    for hypothesis in recipe.hypotheses:
        of_row = samples[hypothesis.row]
        a, b = of_row.get(hypothesis.arm), of_row.get(hypothesis.than)
        test, permuted, text = NOTHING, None, "not decided: nothing was measured"
        if a and (b or not hypothesis.than):
            level = hypothesis.looks.get(min(len(a), len(b or a)), LEVEL)
            level /= 1 if recipe.together else len(recipe.hypotheses)
            test = compare(a, b, False, level, hypothesis.margin)
            permuted = permutation_p(a, b, hypothesis.margin)
            text = verdict(hypothesis, test)
        lines.append(
            hypothesis.model_dump(exclude={"looks"})
            | {"n": test.n, **_bounds("", test)}
            | {"confidence": 1 - test.level if test.n else math.nan, "p": test.p}
            | {"p_permutation": permuted, "verdict": text}
            | {"seeds": " and ".join(map(str, dict.fromkeys(test.counts)))}
        )
    tested = pd.DataFrame(lines)
    return tested if recipe.together or not lines else tested.assign(p=holm(tested["p"].tolist()))


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


def _table(recipe: Recipe, samples: Samples, hypotheses: pd.DataFrame) -> pd.DataFrame:
    """A line per row and arm: mean, interquartile mean (of five seeds or more) and difference to
    the baseline, each with its interval; p, also corrected (by Holm, or that of the hypothesis
    about it); the values of the seeds; and whether it `differs`: by p, or by the hypothesis."""
    baseline, against = recipe.baseline, f"minus_{recipe.baseline}_"
    tests = {
        (label, arm): compare(values, of_row[baseline], False)
        if baseline in of_row and arm != baseline
        else NOTHING
        for label, of_row in samples.items()
        for arm, values in of_row.items()
    }
    decided = {
        (line.row, line.arm): (line.p, line.verdict in ("shown", "refuted"))
        for line in hypotheses.itertuples()
        if line.than == baseline
    }
    family = [key for key in tests if key not in decided]
    corrected = zip(family, holm([tests[key].p for key in family]), strict=True)
    decided |= {key: (p, p < LEVEL) for key, p in corrected}
    lines: list[dict[str, Any]] = []
    for label, row in recipe.rows.items():
        for arm, values in samples[label].items():
            test, (p, differs) = tests[label, arm], decided[label, arm]
            lines.append(
                {"row": label, "metric": row.metric, "reduce": row.reduce, "role": row.role}
                | {"arm": arm, "n": len(values), **_bounds("", interval(values))}
                | _bounds("iqm_", interquartile_mean(values) or NOTHING)
                | {**_bounds(against, test), "p": test.p, "p_corrected": p}
                | {"values": " ".join(f"{value:.6g}" for value in values.values())}
                | {"paper": row.paper, "differs": differs}
            )
    return pd.DataFrame(lines)


def _bounds(prefix: str, test: Estimate) -> dict[str, float]:
    return {f"{prefix}{name}": getattr(test, name) for name in ("mean", "low", "high")}
