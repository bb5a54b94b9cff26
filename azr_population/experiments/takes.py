"""Takes: one number from a run's curve. Early and late mean the first and last tenth of the steps.

A tenth, because single steps are noisy: a step of one agent at nano scale has 24 tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Curve = Sequence[tuple[int, float]]
"""(step, value), ascending."""


def early(curve: Curve) -> float:
    """Mean over the first tenth of the steps."""
    return _mean([value for step, value in curve if step <= curve[0][0] - 1 + _tenth(curve)])


def late(curve: Curve) -> float:
    """Mean over the last tenth of the steps."""
    return _mean([value for step, value in curve if step > curve[-1][0] - _tenth(curve)])


def change(curve: Curve) -> float:
    """Late minus early."""
    return late(curve) - early(curve)


def end(curve: Curve) -> float:
    """The last value: for what is measured seldom and precisely, such as the exam."""
    return curve[-1][1]


def gain(curve: Curve) -> float:
    """The last value minus the first."""
    return curve[-1][1] - curve[0][1]


def lowest(curve: Curve) -> float:
    """The least mean over any tenth of the steps."""
    return min(_windows(curve))


def highest(curve: Curve) -> float:
    """The greatest mean over any tenth of the steps."""
    return max(_windows(curve))


TAKES: dict[str, Callable[[Curve], float]] = {
    function.__name__: function for function in (early, late, change, end, gain, lowest, highest)
}


def _tenth(curve: Curve) -> int:
    return max(1, (curve[-1][0] - curve[0][0] + 1) // 10)


def _windows(curve: Curve) -> list[float]:
    width = _tenth(curve)
    ends = [step for step, _ in curve if step >= curve[0][0] + width - 1]
    return [
        _mean([value for step, value in curve if end - width < step <= end])
        for end in ends or [curve[-1][0]]
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
