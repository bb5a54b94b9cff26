"""What comes out of verdicts: pass@k with intervals, per contestant and for a population, and the
difference of two on the same problems.

Averages go over benchmarks within an area, and `all` is the mean of the areas' averages, as in
AZR's tables (CAvg, MAvg, AVG). Intervals are 95% percentile bootstraps over problems, drawn anew
within each benchmark; the exact binomial bound where none or all were solved.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from azr_population.measuring.evaluation.benchmark import AREAS, Benchmark
from azr_population.runs.diagnostics.statistics import Estimate

Scores = np.ndarray
"""[problems]: of each problem the chance that k samples hold a right one, in 0..1."""
KS = (1, 4, 16, 64, 256)
_DRAWS = 2000
_SEED = 20_260_527


def pass_at_k(right: Sequence[Sequence[bool]], k: int) -> Scores:
    """Unbiased pass@k (Chen et al. 2021) of each problem, from the verdicts on its samples. Raises
    ValueError for a problem with less than k samples."""
    scores = np.empty(len(right))
    for place, verdicts in enumerate(right):
        n, c = len(verdicts), sum(verdicts)
        if n < k:
            raise ValueError(f"pass@{k} of {n} samples")
        scores[place] = 1.0 - math.comb(n - c, k) / math.comb(n, k)
    return scores


@dataclass(frozen=True)
class Column:
    """What is averaged in a column of the table: benchmarks by name, with weights that sum to 1."""

    title: str
    weights: Mapping[str, float]


def by_azr(name: str) -> str:
    """The name of a benchmark's or of all mathematics' figures by AZR's rule."""
    return f"{name} by AZR's rule"


def columns(benchmarks: Sequence[Benchmark]) -> list[Column]:
    """A column for each benchmark, for each area that has several, for mathematics by AZR's rule,
    and for all."""
    made = [Column(one.title, {one.name: 1.0}) for one in benchmarks]
    areas = {
        title: [one.name for one in benchmarks if one.area == area] for area, title in AREAS.items()
    }
    for title, names in areas.items():
        if len(names) > 1:
            made.append(Column(title, {name: 1 / len(names) for name in names}))
    if mathematics := areas[AREAS["math"]]:
        weights = {by_azr(name): 1 / len(mathematics) for name in mathematics}
        made.append(Column(by_azr("mathematics"), weights))
    if all(areas.values()):
        weights = {n: 1 / len(names) / len(areas) for names in areas.values() for n in names}
        made.append(Column("all", weights))
    return made


def average(column: Column, scores: Mapping[str, Scores]) -> float:
    """A contestant's figure in a column."""
    return float(sum(w * scores[name].mean() for name, w in column.weights.items()))


def estimate(
    column: Column,
    members: Sequence[Mapping[str, Scores]],
    over: Callable[..., Any] = np.mean,
) -> Estimate:
    """The figure of one contestant, or the mean, best or worst (`np.mean`, `np.max`, `np.min`) of
    several, with its interval.

    A draw of problems is the same for all members, and `over` is taken within the draw.
    """
    value = float(over([average(column, member) for member in members]))
    drawn = over(resampled(column, members), axis=0)
    problems = sum(len(members[0][name]) for name in column.weights)
    if np.ptp(drawn) == 0 and value in (0.0, 1.0):
        # All alike: draws know nothing of what was not seen, the exact binomial bound does.
        unseen = 1.0 - 0.025 ** (1.0 / problems)
        low, high = (0.0, unseen) if value == 0.0 else (1.0 - unseen, 1.0)
    else:
        low, high = np.percentile(drawn, (2.5, 97.5))
    return Estimate(value, float(low), float(high), problems)


def resampled(column: Column, members: Sequence[Mapping[str, Scores]]) -> np.ndarray:
    """[members, draws]: the column's figure on problems that are drawn with replacement."""
    random = np.random.default_rng(_SEED)
    total = np.zeros((len(members), _DRAWS))
    for name, weight in column.weights.items():
        stacked = np.stack([member[name] for member in members])  # [members, problems]
        problems = stacked.shape[1]
        # How often each problem is drawn: then a draw's mean is a matrix product.
        counts = random.multinomial(problems, np.full(problems, 1 / problems), size=_DRAWS)
        total += weight * (stacked @ counts.T) / problems
    return total


@dataclass(frozen=True)
class Paired:
    """One side's figure minus the other's on the same problems."""

    estimate: Estimate
    mcnemar: float | None
    """Exact p (McNemar 1947) that the two solve equally many, where each is one model with one
    completion a problem."""


def paired_difference(
    column: Column,
    ours: Sequence[Mapping[str, Scores]],
    theirs: Sequence[Mapping[str, Scores]],
) -> Paired:
    """The mean over our members minus the mean over theirs, with a paired bootstrap interval.
    Raises ValueError where the two were not asked the same problems."""
    for name in column.weights:
        if len(ours[0][name]) != len(theirs[0][name]):
            raise ValueError(f"{name}: {len(ours[0][name])} and {len(theirs[0][name])} problems")
    drawn = resampled(column, [*ours, *theirs])
    apart = drawn[: len(ours)].mean(axis=0) - drawn[len(ours) :].mean(axis=0)
    low, high = np.percentile(apart, (2.5, 97.5))
    value = float(
        np.mean([average(column, one) for one in ours])
        - np.mean([average(column, one) for one in theirs])
    )
    problems = sum(len(ours[0][name]) for name in column.weights)
    estimate = Estimate(value, float(low), float(high), problems)
    return Paired(estimate, _mcnemar(column, ours, theirs))


def _mcnemar(
    column: Column,
    ours: Sequence[Mapping[str, Scores]],
    theirs: Sequence[Mapping[str, Scores]],
) -> float | None:
    if len(ours) != 1 or len(theirs) != 1:
        return None
    mine = np.concatenate([ours[0][name] for name in column.weights])
    other = np.concatenate([theirs[0][name] for name in column.weights])
    if not (set(np.unique(mine)) | set(np.unique(other))) <= {0.0, 1.0}:
        return None
    only_mine, only_other = int((mine > other).sum()), int((mine < other).sum())
    if only_mine + only_other == 0:
        return 1.0
    return float(binomtest(only_mine, only_mine + only_other).pvalue)
