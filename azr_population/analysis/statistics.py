"""Numbers over seeds: what a curve is reduced to, means and differences with intervals, tests.

A seed is one observation: the steps and the members of a run depend on each other. Intervals of
means are Student's or, where skewness makes them wider, Hall's (1992); of shares of tasks they are
Wilson's (1927); of what has no formula they are percentiles of a bootstrap. Corrections are Holm's
(1979). perf/calibration.py measures how often they are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

LEVEL = 0.05
FEWEST = 3
"""Observations below which there is no interval and no verdict."""
MANY = 6
"""Observations in each arm from which on degrees of freedom are Welch's."""
MOST = 200
"""Seeds up to which `seeds_for` looks."""
Key = TypeVar("Key")
Values = Mapping[str, float] | Sequence[float] | np.ndarray
"""One number per observation: of a seed by the name of its run's folder, or in order."""


def tenth(steps: int) -> int:
    """A tenth of the steps, rounded up."""
    return max(1, math.ceil(steps / 10))


def _first(curve: pd.Series, steps: int) -> float:
    return float(curve[curve.index <= tenth(steps)].mean())


def _late(curve: pd.Series, steps: int) -> float:
    return float(curve[curve.index > steps - tenth(steps)].mean())


def _last(curve: pd.Series, steps: int) -> float:
    """NaN where nothing was measured in the last tenth: an earlier value is not one at the end."""
    return float(curve.iloc[-1]) if curve.index[-1] > steps - tenth(steps) else math.nan


def _windows(curve: pd.Series, steps: int) -> list[float]:
    """Means over every tenth of the steps."""
    width = tenth(steps)
    ends = [step for step in curve.index if step >= curve.index[0] + width - 1]
    return [
        float(curve[(curve.index > end - width) & (curve.index <= end)].mean())
        for end in ends or [curve.index[-1]]
    ]


def _autocorrelation(curve: pd.Series, steps: int) -> float:
    """At lag 1, of what a linear trend leaves: near 1 where the curve swings over many steps, about
    -2 / length for noise. NaN of fewer than ten values, or of a straight line."""
    if len(curve) < 10:
        return math.nan
    residual = curve.to_numpy() - np.polyval(np.polyfit(curve.index, curve, 1), curve.index)
    if np.abs(residual).max() < 1e-9:
        return math.nan
    return float((residual[:-1] * residual[1:]).sum() / (residual**2).sum())


REDUCERS: dict[str, Callable[[pd.Series, int], float]] = {
    "first_10pct": _first,
    "last_10pct": _late,
    "change": lambda curve, steps: _late(curve, steps) - _first(curve, steps),
    "last": _last,
    "delta": lambda curve, steps: _last(curve, steps) - float(curve.iloc[0]),
    "lowest_10pct": lambda curve, steps: min(_windows(curve, steps)),
    "highest_10pct": lambda curve, steps: max(_windows(curve, steps)),
    "autocorrelation": _autocorrelation,
    # The first step warms caches up.
    "median": lambda curve, steps: float(curve[curve.index > 1].median()),
}
"""One number of a curve [step -> value] and the arm's number of steps."""


@dataclass(frozen=True)
class Estimate:
    """A mean, or a difference of two, with its interval at `level` and p-value."""

    mean: float
    low: float
    high: float
    counts: tuple[int, ...]
    """Seeds of each arm, in their order; pairs if paired."""
    p: float = math.nan
    level: float = LEVEL
    error: float = math.nan
    """The standard error of the mean."""

    @property
    def n(self) -> int:
        return min(self.counts)

    def sign(self, reference: float = 0.0) -> int | None:
        """1 and -1 where the interval lies above and below the reference, 0 where it has it inside;
        None without an interval."""
        if math.isnan(self.low):
            return None
        return int(self.low > reference) - int(self.high < reference)

    @property
    def sd(self) -> float:
        """The standard deviation over seeds that gives the error with these counts."""
        return self.error / math.sqrt(sum(1 / count for count in self.counts))

    @property
    def upper_sd(self) -> float:
        """See `upper_sd`."""
        return upper_sd(self.sd, sum(self.counts) - len(self.counts))

    def within(self, least: float, most: float) -> Estimate:
        """The estimate with an interval that ends where no value can lie."""
        return replace(self, low=max(self.low, least), high=min(self.high, most))

    def to_json(self) -> dict[str, Any]:
        """Mean, bounds and counts; null where there is none."""
        values = {name: or_none(getattr(self, name)) for name in ("mean", "low", "high")}
        return {**values, "n": list(self.counts)}


NOTHING = Estimate(math.nan, math.nan, math.nan, (0,))
"""The estimate from no observations."""


def or_none(value: float) -> float | None:
    """The number in six digits after the point; None for NaN, which JSON lacks."""
    return None if math.isnan(value) else round(float(value), 6)


def interval(
    values: Values, kind: Literal["mean", "share", "bootstrap"] = "mean", count: int = 0
) -> Estimate:
    """A value with its 95% interval.

    Args:
        values: observations, whose mean is taken; for a `bootstrap` the value, then those of
            samples that were drawn anew.
        kind: `mean` as `compare`; `share` of observations that are 0 or 1, Wilson's; or the
            percentiles of the `bootstrap`.
        count: observations behind a bootstrapped share. Where all of them agree the bound is the
            exact binomial one. Other samples without spread have no interval, as in `compare`.
    """
    if kind == "mean":
        return compare(values, None, False)
    numbers = _array(values)
    if kind == "share":
        from scipy.stats import binomtest

        if not (n := len(numbers)):
            return NOTHING
        solved = round(numbers.sum())
        bounds = binomtest(solved, n).proportion_ci(method="wilson")
        return Estimate(solved / n, float(bounds.low), float(bounds.high), (n,))
    value = float(numbers[0])
    low, high = (float(bound) for bound in np.percentile(numbers[1:], (2.5, 97.5)))
    if high - low <= 1e-12:
        low = high = math.nan
        # A mean of shares that are 1 is not always 1 to the last digit.
        if count and min(abs(value), abs(1.0 - value)) <= 1e-12:
            unseen = 1.0 - (LEVEL / 2) ** (1.0 / count)
            low, high = (0.0, unseen) if value < 0.5 else (1.0 - unseen, 1.0)
    return Estimate(value, low, high, (count,))


def compare(
    a: Values, b: Values | None, paired: bool, level: float = LEVEL, margin: float = 0.0
) -> Estimate:
    """The mean difference of `a` and `b`, or of their pairs; without `b` the mean of `a`. The
    p-value is of no difference beyond `margin`. Bounds and p are those of `mean_tests`; there are
    none without variance in an arm, or with fewer than `FEWEST` observations."""
    if b is not None and paired:
        a, b = (pd.Series(a, dtype=float) - pd.Series(b, dtype=float)).dropna().tolist(), None
    arms = [_array(values) for values in (a, b) if values is not None]
    counts = tuple(map(len, arms))
    if not min(counts):
        return Estimate(math.nan, math.nan, math.nan, counts, level=level)
    mean = float(arms[0].mean()) - (float(arms[1].mean()) if len(arms) > 1 else 0.0)
    if min(counts) < FEWEST or min(np.ptp(values) for values in arms) <= 1e-12:
        return Estimate(mean, math.nan, math.nan, counts, level=level)
    low, high, p, error = (float(x) for x in mean_tests(arms, level, margin))
    return Estimate(mean, low, high, counts, p, level, error)


def mean_tests(
    arms: Sequence[np.ndarray], level: float = LEVEL, margin: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tests of means, many at a time.

    Unpaired, variances are not pooled (Welch). From `MANY` observations in each arm on the degrees
    of freedom are Welch's. Below they are those of the smaller arm, since Welch's are too many for
    arms of unequal size whose values are skewed: 3 seeds against 12 then miss in 8%. Each bound is
    the farther one of Student's and of Hall's for a skewed mean (Ann. Stat. 20, 1992), and p the
    larger: where the tail of one arm is low and that of the other high, Student's alone misses in
    10%.

    Args:
        arms: values [..., observations] of one or two arms, with variance.
        level: the share of intervals that may miss.
        margin: the difference that p is about.

    Returns:
        low, high, p and the standard error [...] of the mean, or of the first arm's mean minus the
        second's.
    """
    from scipy.special import stdtr, stdtrit  # a tenth of the time of scipy.stats.t

    counts = [values.shape[-1] for values in arms]
    means = [values.mean(axis=-1) for values in arms]
    mean = means[0] - (means[1] if len(means) > 1 else 0.0)
    parts = [v.var(axis=-1, ddof=1) / n for v, n in zip(arms, counts, strict=True)]
    error = np.sqrt(sum(parts))
    freedom: Any = min(counts) - 1
    if min(counts) >= MANY:
        freedom = error**4 / sum(part**2 / (n - 1) for part, n in zip(parts, counts, strict=True))
    # By the unbiased third cumulants: of six seeds the plain moments see three quarters of it.
    thirds = [
        ((values - center[..., None]) ** 3).sum(axis=-1) / math.perm(n, 3)
        for values, center, n in zip(arms, means, counts, strict=True)
    ]
    skewness = (thirds[0] - sum(thirds[1:])) / error**3
    t = (mean - margin) / error
    least = np.minimum(np.abs(t), np.abs(_hall(t, skewness)))
    reach = stdtrit(freedom, 1 - level / 2)
    low = mean - error * np.maximum(reach, _inverse_of_hall(reach, skewness))
    high = mean - error * np.minimum(-reach, _inverse_of_hall(-reach, skewness))
    return low, high, 2 * stdtr(freedom, -least), error


def _hall(t: np.ndarray, skewness: np.ndarray) -> np.ndarray:
    """A t-value as it would be without the skewness, by Hall's cubic. Beyond its inflection, where
    it is flat and means nothing, the value is infinite."""
    cubic = t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6
    return np.where(-t * skewness > 3, np.inf, cubic)


def _inverse_of_hall(x: np.ndarray, skewness: np.ndarray) -> np.ndarray:
    """The t-value of which `_hall` makes `x`, at most that of the inflection."""
    straight = np.abs(skewness) < 1e-6
    root = np.maximum(0.0, 1 + skewness * (x - skewness / 6))
    return np.where(straight, x, 3 * (np.cbrt(root) - 1) / np.where(straight, 1.0, skewness))


def _array(values: Values) -> np.ndarray:
    return np.array(list(values.values() if isinstance(values, Mapping) else values), dtype=float)


def upper_sd(sd: float, freedom: int) -> float:
    """The bound that the true standard deviation exceeds in one of five samples, for an estimate
    with so many degrees of freedom. `detectable` of the estimate itself is too small: with 3 or 4
    seeds in each arm two of three such differences are shown (Browne, Stat. Med. 14, 1995)."""
    from scipy.special import chdtri

    return sd * math.sqrt(freedom / float(chdtri(freedom, 0.8)))


def detectable(sd: float, n: int, level: float = LEVEL) -> float:
    """The difference that `n` seeds in each arm show with a chance of about 80%, where seeds have
    the standard deviation `sd` (perf/calibration.py, power): with 71 to 89% for 6 to 24 seeds and
    levels of .05 to .008, with 66 to 76% for 3 or 4. Infinite below `FEWEST` seeds."""
    return float(sd * _reach(level)[min(n, MOST)])


def seeds_for(sd: float, difference: float, level: float = LEVEL) -> int | None:
    """Seeds in each arm that would show a difference; see `detectable`. None: above `MOST`."""
    fitting = np.flatnonzero(sd * _reach(level) <= difference)
    return int(fitting[0]) if len(fitting) else None


@lru_cache
def _reach(level: float) -> np.ndarray:
    """The difference that is shown for a standard deviation of 1, by seeds in each arm. Hall's
    correction costs some of the 90% that Student's test alone would have."""
    from scipy.special import stdtrit

    n = np.arange(FEWEST, MOST + 1)
    freedom = np.where(n >= MANY, 2 * (n - 1), n - 1)
    reach = (stdtrit(freedom, 1 - level / 2) + stdtrit(freedom, 0.9)) * np.sqrt(2 / n)
    return np.concatenate([np.full(FEWEST, np.inf), reach])


def far_apart(shares: Values) -> bool:
    """Whether a few shares lie far below or above all others, as where some runs collapse: by more
    than 5 points and five times what the others differ by. Where one run in five collapses,
    Student's interval of the mean misses in half of cases with 3 seeds and a quarter with 6."""
    ordered = np.sort(_array(shares))
    if len(ordered) < FEWEST:
        return False
    gaps = np.diff(ordered)
    at = int(gaps.argmax())
    spread = max(float(np.ptp(side)) for side in (ordered[: at + 1], ordered[at + 1 :]))
    return bool(gaps[at] > max(0.05, 5 * spread))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number; NaN is no test and stays NaN. (statsmodels' collects
    garbage, which takes a second in a large process.)"""
    values = np.array(p_values, dtype=float)
    order = np.argsort(values)[: np.isfinite(values).sum()]  # NaN comes last
    factors = np.arange(len(order), 0, -1)
    values[order] = np.minimum(np.maximum.accumulate(factors * values[order]), 1.0)
    return [float(value) for value in values]


def with_holm(tests: Mapping[Key, Estimate]) -> dict[Key, Estimate]:
    """The tests as one family: their p by `holm`."""
    corrected = holm([test.p for test in tests.values()])
    return {
        key: replace(test, p=p) for (key, test), p in zip(tests.items(), corrected, strict=True)
    }


def interval_text(test: Estimate, percent: bool = False, signed: bool = False) -> str:
    """`23.4% [21.0, 25.8]`, or the mean alone where there is no interval; `-` without a mean. A
    difference that rounds to nothing is `less than 0.1 points`, and one of nothing `0 points`. A
    number that would round to 0 has the digits that show its sign: `[-1.6, -0.02]`.

    Args:
        percent: values are fractions and are shown in percent; a signed one in points.
        signed: with `+`, as of a difference.
    """
    if math.isnan(test.mean):
        return "-"
    scale = 100.0 if percent else 1.0
    values = [scale * value for value in (test.mean, test.low, test.high)]
    size = max((abs(value) for value in values if not math.isnan(value)), default=0.0)
    places = 1 if percent or size >= 10 else 2 if size >= 1 else 3
    places = 0 if size >= 1000 else places
    unit = (" points" if signed else "%") if percent else ""
    if signed and not size:
        return f"0{unit}"
    if signed and not any(round(value, places) for value in values if value == value):
        return f"less than {10**-places:g}{unit}"
    mean, least, most = (_digits(value, places, signed) for value in values)
    bounds = "" if math.isnan(test.low) else f" [{least}, {most}]"
    return f"{mean}{unit}{bounds}"


def _digits(value: float, places: int, signed: bool) -> str:
    """The number with so many digits after the point, or as many as show that it is not 0."""
    if 1e-9 < abs(value) < 0.5 * 10**-places:
        places = math.ceil(-math.log10(abs(value)) - 1e-9)
        places += round(abs(value), places) == 0
    return f"{round(value, places) + 0.0:{'+' * signed},.{places}f}"  # never -0.0


def band(
    curves: Mapping[str, pd.Series], least: float = -math.inf, most: float = math.inf
) -> pd.DataFrame:
    """The mean of the seeds' curves with its `interval`, within `least` and `most`, at every step
    that all of them have: `step`, `value`, `low`, `high` (missing without an interval)."""
    table = pd.DataFrame(dict(curves)).dropna() if curves else pd.DataFrame()
    tests = [interval(row).within(least, most) for row in table.to_numpy(dtype=float).tolist()]
    rows = {"step": table.index, "value": [test.mean for test in tests]}
    rows |= {name: [getattr(test, name) for test in tests] for name in ("low", "high")}
    return pd.DataFrame(rows)
