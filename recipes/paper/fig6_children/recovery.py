"""When has a child recovered? A rule with known error rates, on evals that are paired by task.

A child and its reference have the same eval, so the mean of the differences d_i = p_child,i -
p_ref,i over its tasks has a far smaller error than either score. There are two references: the
better parent's level when the child was made, which is fixed, and the untouched copy of that
parent, which keeps learning.

- Worse (or better) at birth: the 95% interval of the difference at step 0 excludes 0.
- Recovered at step t: the lower end of the 95% interval of the difference is above -margin at this
  eval and the next. From step 1 on, differences are averaged over three neighbouring evals, task by
  task, to reduce the noise of single updates. So a child counts as recovered if a loss of the
  margin is ruled out, not if a loss could not be shown. The margin is a quarter of what the parents
  learned, at most 2 points: a child that kept nothing (the arm `reset`) has not recovered.
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
"""Arms without anything of the parents: the untrained member, and a random update with the better
parent's norm."""

Z_95 = 1.96
T_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31}
"""Two-sided 95% quantiles of Student's t by degrees of freedom, for intervals over seeds."""


@dataclass(frozen=True)
class Difference:
    """A mean over the eval's tasks and half of its 95% interval."""

    mean: float
    half: float


@dataclass(frozen=True)
class ArmRun:
    """One arm of one seed: `evals[step]` and `parent` have a score for each task."""

    seed: int
    arm: str
    parent: list[float]
    evals: dict[int, list[float]]

    def score(self, step: int) -> float:
        """The expected solve rate."""
        return mean(self.evals[step])


def read_arm_runs(folder: Path) -> list[ArmRun]:
    """All finished arms of a folder, sorted by seed."""
    arm_runs = []
    for path in sorted((folder / "arm_runs").glob("*.json")):
        raw: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        evals = {int(step): solved for step, solved in raw["evals"].items()}
        arm_runs.append(ArmRun(raw["seed"], raw["arm"], raw["parent"], evals))
    return arm_runs


def paired(child: Sequence[float], reference: Sequence[float]) -> Difference:
    """The mean difference of two evals on the same tasks."""
    differences = [score - other for score, other in zip(child, reference, strict=True)]
    return Difference(mean(differences), Z_95 * stdev(differences) / len(differences) ** 0.5)


def smoothed(evals: dict[int, list[float]], step: int) -> list[float]:
    """The eval at `step`, from step 1 on averaged with its neighbours except step 0."""
    steps = sorted(evals)
    place = steps.index(step)
    near = [s for s in steps[max(place - 1, 0) : place + 2] if s > 0] if step else [0]
    return [mean(values) for values in zip(*(evals[s] for s in near), strict=True)]


def to_parent(arm_run: ArmRun) -> dict[int, Difference]:
    """By step, the smoothed difference to the parent's level when the child was made."""
    return {
        step: paired(smoothed(arm_run.evals, step), arm_run.parent)
        for step in sorted(arm_run.evals)
    }


def to_untouched(arm_run: ArmRun, untouched: ArmRun) -> dict[int, Difference]:
    """By step, the smoothed difference to the untouched copy at the same step."""
    return {
        step: paired(smoothed(arm_run.evals, step), smoothed(untouched.evals, step))
        for step in sorted(arm_run.evals)
    }


def recovered(differences: dict[int, Difference], margin: float) -> int | None:
    """The step of recovery by the rule above; None: not recovered."""
    steps = sorted(differences)
    holds = [differences[step].mean - differences[step].half > -margin for step in steps]
    both = (step for step, *two in zip(steps, holds, holds[1:], strict=False) if all(two))
    return next(both, None)


def verdict(births: Sequence[float], ends: Sequence[float], margin: float) -> str:
    """An arm's verdict from its differences by seed: to the parent at birth, and to the untouched
    copy at the end.

    `nothing lost`: at birth a loss of the margin is ruled out. `lost, back`: there was a loss, and
    at the end a loss of the margin is ruled out. `lost, not back`: there was a loss, and there
    still is. `unclear`: none of these. All by 95% t-intervals over seeds.
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
    """The reasons why the test is void; empty if it is valid. It must find that the arms of `LOST`
    lose and do not recover, otherwise it would find recovery in anything that trains, and that a
    second copy of the parent loses nothing."""
    expected = {**dict.fromkeys(LOST, "lost, not back"), "again": "nothing lost"}
    return [
        f"`{arm}` is {verdicts.get(arm, 'missing')}; the test needs: {need}"
        for arm, need in expected.items()
        if verdicts.get(arm) != need
    ]


def margin_of(parents: Sequence[float], base: float) -> float:
    """The loss that recovery must rule out, from the parents' scores; in [0, 1]."""
    return min(LARGEST_MARGIN, MARGIN_OF_GAIN * max(mean(parents) - base, 0.0))


EQUIVALENT = 0.015
"""The difference of scores within which a child counts as equal to its parent."""


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
