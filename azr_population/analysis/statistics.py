"""Numbers over seeds: what a curve is reduced to, means and differences with intervals, tests.

A seed is one observation: the steps and the members of a run depend on each other. Intervals are
Student's, of differences Welch's; corrections are Holm's (1979).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

LEVEL = 0.05
Values = Mapping[str, float] | Sequence[float]
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


def _area(curve: pd.Series, steps: int) -> float:
    """The mean height between first and last step, by trapezoids."""
    from scipy.integrate import trapezoid  # numpy's has another name before 2.0

    width = curve.index[-1] - curve.index[0]
    return float(trapezoid(curve, curve.index) / width) if width else float(curve.iloc[0])


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
    "area": _area,
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

    @property
    def n(self) -> int:
        return min(self.counts)

    def to_json(self) -> dict[str, Any]:
        """Mean, bounds and counts; null where there is none."""
        values = {name: or_none(getattr(self, name)) for name in ("mean", "low", "high")}
        return {**values, "n": list(self.counts)}


NOTHING = Estimate(math.nan, math.nan, math.nan, (0,))
"""Of no observations."""


def or_none(value: float) -> float | None:
    """The number in six digits after the point; None for NaN, which JSON lacks."""
    return None if math.isnan(value) else round(float(value), 6)


def interval(values: Values, level: float = LEVEL) -> Estimate:
    """The mean with Student's interval; one observation has none."""
    return compare(values, None, False, level)


def compare(
    a: Values, b: Values | None, paired: bool, level: float = LEVEL, margin: float = 0.0
) -> Estimate:
    """The mean difference of `a` and `b` by Welch's test, or paired over the seeds of both by
    Student's; without `b` the mean of `a`. The p-value is of no difference beyond `margin`."""
    from scipy import stats

    sample, other = pd.Series(a, dtype=float), None if b is None else pd.Series(b, dtype=float)
    if other is not None and paired:
        sample, other = (sample - other).dropna(), None
    first, second = sample.to_numpy(), None if other is None else other.to_numpy()
    counts = (len(first),) if second is None else (len(first), len(second))
    if not min(counts):
        return Estimate(math.nan, math.nan, math.nan, counts, level=level)
    mean = float(first.mean() - (0.0 if second is None else second.mean()))
    if min(counts) < 2:
        return Estimate(mean, math.nan, math.nan, counts, level=level)
    with warnings.catch_warnings():
        # Samples without variance: the interval is a point, and the p-value says nothing.
        warnings.simplefilter("ignore", RuntimeWarning)
        if second is None:
            test = stats.ttest_1samp(first - margin, 0.0)
        else:
            test = stats.ttest_ind(first - margin, second, equal_var=False)
        bounds = test.confidence_interval(1 - level)
        low, high = float(bounds.low) + margin, float(bounds.high) + margin
    if math.isnan(low):
        low = high = mean
    return Estimate(mean, low, high, counts, float(test.pvalue), level)


def difference_of_shares(a: tuple[int, int], b: tuple[int, int]) -> Estimate:
    """The share of `a` minus that of `b`, each (successes, trials), with Newcombe's 95% interval
    (1998, method 10), which holds near 0 and 1 too."""
    from statsmodels.stats.proportion import confint_proportions_2indep

    low, high = confint_proportions_2indep(*a, *b, method="newcomb", alpha=LEVEL)
    return Estimate(a[0] / a[1] - b[0] / b[1], float(low), float(high), (a[1], b[1]))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number; NaN is no test and stays NaN."""
    from statsmodels.stats.multitest import multipletests

    values = np.array(p_values, dtype=float)
    finite = ~np.isnan(values)
    if finite.any():
        values[finite] = multipletests(values[finite], method="holm")[1]
    return [float(value) for value in values]


def interval_text(test: Estimate, percent: bool = False, signed: bool = False) -> str:
    """`23.4% [21.0, 25.8]`, or the mean alone where there is no interval; `-` without a mean.

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
    form = f"{{:{'+' * signed},.{places}f}}"
    mean, least, most = (form.format(round(value, places) + 0.0) for value in values)  # never -0.0
    unit = (" points" if signed else "%") if percent else ""
    bounds = "" if math.isnan(test.low) else f" [{least}, {most}]"
    return f"{mean}{unit}{bounds}"


def band(curves: Mapping[str, pd.Series]) -> pd.DataFrame:
    """The mean of the seeds' curves and Student's interval at every step that all of them have:
    `step`, `value`, `low`, `high` (missing for one seed)."""
    from scipy.stats import t

    table = pd.DataFrame(dict(curves)).dropna() if curves else pd.DataFrame()
    mean = table.mean(axis=1)
    half = table.sem(axis=1) * t.ppf(1 - LEVEL / 2, max(table.shape[1] - 1, 1))
    rows = {"step": table.index, "value": mean, "low": mean - half, "high": mean + half}
    return pd.DataFrame(rows).reset_index(drop=True)
