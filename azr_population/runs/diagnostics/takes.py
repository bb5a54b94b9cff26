"""Takes: one number from a run's curve. Early and late mean the first and last tenth of the steps.

A single step is too noisy: one of a single agent at nano scale has 24 tasks. The tenth is one of
the compared steps, not of those at which the curve has a value. A run without a valid task in its
last tenth has no late value (NaN), since its last programs are older.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import linear_regression

Curve = Sequence[tuple[int, float]]
"""(step, value), ascending; at least one."""


def early(curve: Curve, steps: int) -> float:
    """Mean over the first tenth of the steps; NaN without a value there."""
    return mean([value for step, value in curve if step <= tenth(steps)])


def late(curve: Curve, steps: int) -> float:
    """Mean over the last tenth of the steps; NaN without a value there."""
    return mean([value for step, value in curve if step > steps - tenth(steps)])


def change(curve: Curve, steps: int) -> float:
    """Late minus early."""
    return late(curve, steps) - early(curve, steps)


def end(curve: Curve, steps: int) -> float:
    """The last value, for what is measured rarely and precisely, such as the exam."""
    return curve[-1][1]


def gain(curve: Curve, steps: int) -> float:
    """The last value minus the first."""
    return curve[-1][1] - curve[0][1]


def area(curve: Curve, steps: int) -> float:
    """The mean height of the curve between its first and last step, by trapezoids: the whole way
    counts, not its end alone."""
    width = curve[-1][0] - curve[0][0]
    if not width:
        return curve[0][1]
    parts = ((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(curve))
    return math.fsum(parts) / width


def lowest(curve: Curve, steps: int) -> float:
    """The lowest mean over any tenth of the steps."""
    return min(_windows(curve, steps))


def highest(curve: Curve, steps: int) -> float:
    """The highest mean over any tenth of the steps."""
    return max(_windows(curve, steps))


def oscillation(curve: Curve, steps: int) -> float:
    """Autocorrelation at lag 1 of what is left of the curve without its linear trend: near 1 where
    it swings over many steps, near -1 where it turns at every step, about -2 / length where there
    is nothing but noise. NaN of fewer than ten values, or of a straight line."""
    if len(curve) < 10:
        return math.nan
    slope, height = linear_regression(*zip(*curve, strict=True))
    rest = [value - slope * step - height for step, value in curve]
    if max(map(abs, rest)) < 1e-9:
        return math.nan
    # About the whole curve's mean, which is 0 here.
    return math.fsum(a * b for a, b in pairwise(rest)) / math.fsum(a * a for a in rest)


TAKES: dict[str, Callable[[Curve, int], float]] = {
    function.__name__: function
    for function in (early, late, change, end, gain, area, lowest, highest, oscillation)
}
"""The takes by the names that recipes use."""


def tenth(steps: int) -> int:
    """A tenth of the steps, rounded up."""
    return max(1, math.ceil(steps / 10))


def mean(values: Sequence[float]) -> float:
    """The mean of the values; NaN without any."""
    return math.fsum(values) / len(values) if values else math.nan


def _windows(curve: Curve, steps: int) -> list[float]:
    width = tenth(steps)
    ends = [step for step, _ in curve if step >= curve[0][0] + width - 1]
    return [
        mean([value for step, value in curve if end - width < step <= end])
        for end in ends or [curve[-1][0]]
    ]
