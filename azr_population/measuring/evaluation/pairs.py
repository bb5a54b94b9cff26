"""Comparing two runs, or two members, on the same problems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from azr_population.measuring.evaluation.figures import Column, Scores, average, resampled
from azr_population.runs.diagnostics.statistics import Estimate


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
