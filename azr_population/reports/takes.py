"""Takes: one number from a run's curve. Early and late mean the first and last tenth of the steps.

A tenth, because single steps are noisy: a step of one agent at nano scale has 24 tasks. It is a
tenth of the steps that are compared, not of those at which the curve has a value: where a run has
no valid task in its last tenth, its last programs are of another time, and there is no late value
(NaN).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Curve = Sequence[tuple[int, float]]
"""(step, value), ascending, one at least."""


def early(curve: Curve, steps: int) -> float:
    """Mean over the first tenth of the steps; NaN where nothing is known of them."""
    return mean([value for step, value in curve if step <= tenth(steps)])


def late(curve: Curve, steps: int) -> float:
    """Mean over the last tenth of the steps; NaN where nothing is known of them."""
    return mean([value for step, value in curve if step > steps - tenth(steps)])


def change(curve: Curve, steps: int) -> float:
    """Late minus early."""
    return late(curve, steps) - early(curve, steps)


def end(curve: Curve, steps: int) -> float:
    """The last value: for what is measured seldom and precisely, such as the exam."""
    return curve[-1][1]


def tenth(steps: int) -> int:
    """A tenth of the steps, rounded up; one at least."""
    return max(1, math.ceil(steps / 10))


def mean(values: Sequence[float]) -> float:
    """NaN of nothing."""
    return math.fsum(values) / len(values) if values else math.nan
