"""The takes that a recipe's table can name: those that pages know too, and more."""

from __future__ import annotations

from collections.abc import Callable

from azr_population.reports.takes import Curve, change, early, end, late, mean, tenth


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


def _windows(curve: Curve, steps: int) -> list[float]:
    width = tenth(steps)
    ends = [step for step, _ in curve if step >= curve[0][0] + width - 1]
    return [
        mean([value for step, value in curve if end - width < step <= end])
        for end in ends or [curve[-1][0]]
    ]
