"""Tests over seeds, beside the intervals: p-values, their correction, and a robust mean.

Sources: Holm, "A simple sequentially rejective multiple test procedure" (Scandinavian Journal of
Statistics 1979); Agarwal et al., "Deep reinforcement learning at the edge of the statistical
precipice" (2021) for the interquartile mean with bootstrap intervals.
"""

import math
import warnings
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from azr_population.runs.diagnostics.statistics import Estimate

FEWEST_FOR_BOOTSTRAP = 5
"""Seeds below which resampling them says nothing."""
_RESAMPLES = 9999
_LEVEL = 0.05


def p_value(a: Sequence[float], b: Sequence[float] | None, paired: bool) -> float:
    """Two-sided p that the means of `a` and `b` agree: Welch's t, or if paired Student's of the
    differences; with `b` None that the mean of `a` is 0. NaN where there is no variance to go by.
    """
    from scipy import stats  # late: it takes a second to import

    if b is None:
        b, paired = [0.0] * len(a), True
    if min(len(a), len(b)) < 2:
        return math.nan
    with warnings.catch_warnings():
        # Samples without variance: the p-value is NaN, which says it.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = stats.ttest_rel(a, b) if paired else stats.ttest_ind(a, b, equal_var=False)
    return float(test.pvalue)


def permutation_p(a: Sequence[float], b: Sequence[float] | None, paired: bool) -> float | None:
    """As `p_value`, by permuting seeds between the arms (or signs of differences): exact where all
    permutations can be gone through. None where even the most extreme could not come below 5%."""
    from scipy import stats

    if b is None:
        b, paired = [0.0] * len(a), True
    ways = 2 ** len(a) if paired else math.comb(len(a) + len(b), len(a))
    if min(len(a), len(b)) < 2 or 2 / ways >= _LEVEL:
        return None
    test = stats.permutation_test(
        (a, b),
        lambda x, y, axis=-1: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        permutation_type="samples" if paired else "independent",
        vectorized=True,
        n_resamples=_RESAMPLES,
        rng=np.random.default_rng(0),
    )
    return float(test.pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for their number, in their order; NaN is no test and stays NaN."""
    known = sorted((p, place) for place, p in enumerate(values) if not math.isnan(p))
    scaled = [min(1.0, (len(known) - rank) * p) for rank, (p, _) in enumerate(known)]
    corrected = [math.nan] * len(values)
    for (_, place), p in zip(known, accumulate(scaled, max), strict=True):
        corrected[place] = p
    return corrected


def interquartile_mean(values: Sequence[float]) -> Estimate | None:
    """The mean of the middle half, with the 95% interval of a percentile bootstrap over seeds; None
    for fewer than `FEWEST_FOR_BOOTSTRAP`."""
    from scipy import stats

    if len(values) < FEWEST_FOR_BOOTSTRAP:
        return None

    def middle(sample: np.ndarray, axis: int = -1) -> np.ndarray:
        trimmed: np.ndarray = stats.trim_mean(sample, 0.25, axis=axis)
        return trimmed

    found = stats.bootstrap(
        (np.asarray(values),), middle, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    mean = float(stats.trim_mean(values, 0.25))
    return Estimate(mean, float(found.low), float(found.high), len(values))
