"""When has a child recovered? A rule with stated errors, on exams that are paired task by task.

A child and its reference sit the same exam, so the mean of the differences d_i = p_child,i -
p_ref,i over its tasks has a far smaller error than either score. Two references: the level of the
better parent when the child was made (it stands still), and the untouched copy of that parent,
which goes on learning (it moves).

- Worse (or better) at birth: the 95% interval of the difference at step 0 excludes 0.
- Recovered at step t: the lower end of the 95% interval of the difference is above -margin there
  and at the next exam. From step 1 on differences are averaged over three neighbouring exams, task
  by task, against the luck of single updates. So a child counts as recovered when a loss of the
  margin is ruled out, not when a loss could not be shown. The margin is a quarter of what the
  parents learned, at most 2 points: a child that kept nothing (the arm `reset`) has not recovered.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from scipy.stats import ttest_1samp

LARGEST_MARGIN = 0.02
MARGIN_OF_GAIN = 0.25
LOST = ("reset", "noise")
"""Arms in which nothing of the parents is left: the untrained member, and a random update of the
better parent's size."""

Z_95 = 1.96
T_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31}
"""Two-sided 95% quantiles of Student's t by degrees of freedom, for intervals over seeds."""


@dataclass(frozen=True)
class Difference:
    """A mean over the exam's tasks and half of its 95% interval."""

    mean: float
    half: float


@dataclass(frozen=True)
class Unit:
    """One arm of one seed: `exams[step]` and `parent` are chances to solve, task by task."""

    seed: int
    arm: str
    parent: list[float]
    exams: dict[int, list[float]]

    def score(self, step: int) -> float:
        """The expected solve rate."""
        return mean(self.exams[step])


def read_units(folder: Path) -> list[Unit]:
    """All units of a run, by seed; those of the same arm in the order of the arms."""
    units = []
    for path in sorted((folder / "units").glob("*.json")):
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        exams = {int(step): solved for step, solved in raw["exams"].items()}
        units.append(Unit(raw["seed"], raw["arm"], raw["parent"], exams))
    return units


def paired(child: Sequence[float], reference: Sequence[float]) -> Difference:
    """The mean difference of two exams on the same tasks."""
    apart = [score - other for score, other in zip(child, reference, strict=True)]
    return Difference(mean(apart), Z_95 * stdev(apart) / len(apart) ** 0.5)


def smoothed(exams: dict[int, list[float]], step: int) -> list[float]:
    """The exam at `step`, from step 1 on averaged with its neighbours but that of step 0."""
    steps = sorted(exams)
    place = steps.index(step)
    near = [s for s in steps[max(place - 1, 0) : place + 2] if s > 0] if step else [0]
    return [mean(values) for values in zip(*(exams[s] for s in near), strict=True)]


def to_parent(unit: Unit) -> dict[int, Difference]:
    """By step, the smoothed difference to the parent's level when the child was made."""
    return {step: paired(smoothed(unit.exams, step), unit.parent) for step in sorted(unit.exams)}


def to_untouched(unit: Unit, untouched: Unit) -> dict[int, Difference]:
    """By step, the smoothed difference to the untouched copy, which trains as long."""
    return {
        step: paired(smoothed(unit.exams, step), smoothed(untouched.exams, step))
        for step in sorted(unit.exams)
    }


def recovered(differences: dict[int, Difference], margin: float) -> int | None:
    """The step of recovery by the rule above; None when it does not come."""
    steps = sorted(differences)
    holds = [differences[step].mean - differences[step].half > -margin for step in steps]
    for place, step in enumerate(steps):
        if all(holds[place : place + 2]):
            return step
    return None


def verdict(births: Sequence[float], ends: Sequence[float], margin: float) -> str:
    """Of an arm, from a difference for each seed: to the parent at birth, to the untouched copy at
    the end. Only who has lost something can be back.

    `nothing lost`: at birth a loss of the margin is ruled out. `lost, back`: there was a loss, and
    at the end one of the margin is ruled out. `lost, not back`: there was one, and there still is.
    Everything by 95% t-intervals over seeds; `unclear` is the rest.
    """
    (birth, half), (end, half_of_end) = over_seeds(births), over_seeds(ends)
    if birth - half > -margin:
        return "nothing lost"
    if birth + half < 0 and end - half_of_end > -margin:
        return "lost, back"
    if birth + half < 0 and end + half_of_end < 0:
        return "lost, not back"
    return "unclear"


def faults(verdicts: dict[str, str]) -> list[str]:
    """Why the test says nothing; empty where it does. It has to see that the arms of `LOST` lose
    and do not come back, or it would see recovery in anything that trains; and that a second copy
    of the parent loses nothing."""
    expected = {**dict.fromkeys(LOST, "lost, not back"), "again": "nothing lost"}
    return [
        f"`{arm}` is {verdicts.get(arm, 'not there')}, where the test needs: {need}"
        for arm, need in expected.items()
        if verdicts.get(arm) != need
    ]


def margin_of(parents: Sequence[float], base: float) -> float:
    """The loss of expected solve rate that recovery has to rule out, from the parents' scores."""
    return min(LARGEST_MARGIN, MARGIN_OF_GAIN * max(mean(parents) - base, 0.0))


EQUIVALENT = 0.015
"""The difference of expected solve rate within which a child counts as equal to its parent."""


def equivalence(ends: Sequence[float], bound: float = EQUIVALENT) -> float:
    """The p-value of two one-sided t-tests (TOST, Schuirmann 1987) over seeds: small where the mean
    difference is shown to lie within `bound` on both sides; 1 for fewer than two seeds."""
    if len(ends) < 2:
        return 1.0
    sides = ((-bound, "greater"), (bound, "less"))
    return max(float(ttest_1samp(ends, at, alternative=side).pvalue) for at, side in sides)


def over_seeds(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half of the 95% t-interval."""
    if len(values) < 2:
        return mean(values), float("nan")
    return mean(values), T_95.get(len(values) - 1, 2.26) * stdev(values) / len(values) ** 0.5
