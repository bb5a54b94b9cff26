"""Means with confidence intervals over seeds, by Student's t, and differences of shares.

Source: Student, "The probable error of a mean" (Biometrika 1908); Welch, "The generalization of
'Student's' problem when several different population variances are involved" (Biometrika 1947).
A seed is one observation: the steps and members within a run depend on each other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from azr_population.errors import UserError

Series = list[tuple[int, float]]
"""(step, value), ascending in step, all finite."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its confidence interval; `low` and `high` are NaN if there is none."""

    mean: float
    low: float
    high: float
    n: int
    """Observations: seeds or pairs of seeds; for two samples, the size of the smaller one."""


def interval(values: Sequence[float], level: float = 0.95) -> Estimate:
    """The mean of independent observations and its interval by Student's t.

    One observation has no interval; without any the mean is NaN too.

    Raises ValueError: the level does not lie between 0 and 1.
    """
    n = len(values)
    if not values:
        return Estimate(math.nan, math.nan, math.nan, 0)
    mean = math.fsum(values) / n
    if n == 1:
        return Estimate(mean, math.nan, math.nan, 1)
    half = _quantile(n - 1, level) * math.sqrt(_variance(values, mean) / n)
    return Estimate(mean, mean - half, mean + half, n)


def difference(
    a: Sequence[float], b: Sequence[float], paired: bool, level: float = 0.95
) -> Estimate:
    """The mean of `a` minus that of `b`.

    If paired, `a[i]` and `b[i]` belong to the same seed and the interval is that of their
    differences. Otherwise it is Welch's, which allows different variances and needs two
    observations on each side.

    Raises UserError: paired samples of different lengths.
    """
    if paired:
        if len(a) != len(b):
            raise UserError(
                f"{len(a)} seeds cannot be paired with {len(b)}; compare the seeds that both have"
            )
        return interval([x - y for x, y in zip(a, b, strict=True)], level)
    first, second = interval(a, level), interval(b, level)
    mean, n = first.mean - second.mean, min(first.n, second.n)
    if n < 2:
        return Estimate(mean, math.nan, math.nan, n)
    errors = [_variance(values, e.mean) / e.n for values, e in ((a, first), (b, second))]
    error = math.fsum(errors)
    if error == 0.0:
        return Estimate(mean, mean, mean, n)
    # Welch and Satterthwaite's degrees of freedom, not a whole number.
    spread = errors[0] ** 2 / (first.n - 1) + errors[1] ** 2 / (second.n - 1)
    half = _quantile(error**2 / spread, level) * math.sqrt(error)
    return Estimate(mean, mean - half, mean + half, n)


def difference_of_shares(a: tuple[int, int], b: tuple[int, int], level: float = 0.95) -> Estimate:
    """The share of `a` minus that of `b`, each as (successes, trials), with Newcombe's interval.

    It is made of the Wilson intervals of both shares and holds near 0 and 1 too. Source: Newcombe,
    "Interval estimation for the difference between independent proportions" (1998), method 10.

    Raises ValueError: no trial, or more successes than trials.
    """
    from scipy.stats import binomtest  # takes a second to import

    share, other = a[0] / a[1], b[0] / b[1]
    of_a, of_b = (binomtest(*counts).proportion_ci(level, method="wilson") for counts in (a, b))
    mean = share - other
    below = math.hypot(share - of_a.low, of_b.high - other)
    above = math.hypot(of_a.high - share, other - of_b.low)
    return Estimate(mean, mean - below, mean + above, min(a[1], b[1]))


def band(runs: Sequence[Series], level: float = 0.95) -> list[tuple[int, Estimate]]:
    """The estimate over runs at every step that all of them have."""
    if not runs:
        return []
    values = [dict(run) for run in runs]
    shared = sorted(set(values[0]).intersection(*values[1:]))
    return [(step, interval([run[step] for run in values], level)) for step in shared]


def _variance(values: Sequence[float], mean: float) -> float:
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _quantile(freedom: float, level: float) -> float:
    from scipy.special import stdtrit  # not scipy.stats, which takes a second to import

    if not 0.0 < level < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, got {level}")
    return float(stdtrit(freedom, 0.5 + level / 2.0))
