"""Takes: one number from a run's curve. Early and late mean the first and last tenth of the steps.

A tenth, because single steps are noisy: a step of one agent at nano scale has 24 tasks. It is a
tenth of the steps that are compared, not of those at which the curve has a value: where a run has
no valid task in its last tenth, its last programs are of another time, and there is no late value
(NaN).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Curve = Sequence[tuple[int, float]]
"""(step, value), ascending, one at least."""


def early(curve: Curve, steps: int) -> float:
    """Mean over the first tenth of the steps; NaN where nothing is known of them."""
    return _mean([value for step, value in curve if step <= _tenth(steps)])


def late(curve: Curve, steps: int) -> float:
    """Mean over the last tenth of the steps; NaN where nothing is known of them."""
    return _mean([value for step, value in curve if step > steps - _tenth(steps)])


def change(curve: Curve, steps: int) -> float:
    """Late minus early."""
    return late(curve, steps) - early(curve, steps)


def end(curve: Curve, steps: int) -> float:
    """The last value: for what is measured seldom and precisely, such as the exam."""
    return curve[-1][1]


def gain(curve: Curve, steps: int) -> float:
    """The last value minus the first."""
    return curve[-1][1] - curve[0][1]


def lowest(curve: Curve, steps: int) -> float:
    """The least mean over any tenth of the steps."""
    return min(_windows(curve, steps))


def highest(curve: Curve, steps: int) -> float:
    """The greatest mean over any tenth of the steps."""
    return max(_windows(curve, steps))


TAKES: dict[str, Callable[[Curve, int], float]] = {
    function.__name__: function for function in (early, late, change, end, gain, lowest, highest)
}


def _tenth(steps: int) -> int:
    return max(1, math.ceil(steps / 10))


def _windows(curve: Curve, steps: int) -> list[float]:
    width = _tenth(steps)
    ends = [step for step, _ in curve if step >= curve[0][0] + width - 1]
    return [
        _mean([value for step, value in curve if end - width < step <= end])
        for end in ends or [curve[-1][0]]
    ]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
