"""The verdict table: the value of each arm by measure, and its difference from the first arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from azr_population.pages.comparison.azr_log import OTHERWISE
from azr_population.pages.comparison.inputs import Arm, are_mixed
from azr_population.runs.diagnostics import Estimate, Series, difference, interval
from azr_population.runs.diagnostics.takes import TAKES, early, late


@dataclass(frozen=True)
class Measure:
    """A diagnostic reduced to one number per run: see `reduced`."""

    title: str
    diagnostic: str
    how: str
    format: str

    @property
    def on_tasks(self) -> bool:
        """Whether it needs valid tasks."""
        return self.diagnostic != "validity" and not self.diagnostic.startswith("exam")


MEASURES = (
    Measure("Exam at the end, mean of the members", "exam_mean", "end", "percent"),
    Measure("Exam at the end, best member (luck favours many)", "exam_best", "end", "percent"),
    Measure("Solve rate, last tenth of the steps", "solve_rate", "late", "percent"),
    Measure("Solve rate, change", "solve_rate", "change", "percent"),
    Measure("Program size in AST nodes, change", "ast_nodes", "change", "number"),
    Measure("Cyclomatic complexity, change", "cyclomatic", "change", "number"),
    Measure("Halstead volume, change", "halstead_volume", "change", "number"),
    Measure("Lines of code, change", "lines", "change", "number"),
    Measure("Kinds of problems covered, whatever the number of tasks", "coverage", "end", "number"),
    Measure("Kinds per equal number of tasks", "coverage_per_task", "end", "number"),
    Measure("Valid proposals, last tenth of the steps", "validity", "late", "percent"),
)


@dataclass(frozen=True)
class Verdict:
    """A row of the table; the lists have an item per arm.

    `values` and `differences` (from the first arm; None for itself) have n = 0 where there is no
    value; `words` say what the difference means.
    """

    measure: Measure
    values: list[Estimate]
    differences: list[Estimate | None]
    words: list[str]

    def to_json(self) -> dict[str, Any]:
        """What the page draws: `intervals` has `[mean, low, high]` per arm, null without an
        interval, and rows with the same `scale` are drawn to the same one."""
        return {
            "scale": self.measure.diagnostic.partition("_")[0]
            if self.measure.diagnostic.startswith("exam")
            else self.measure.diagnostic,
            "intervals": [
                [known.mean, known.low, known.high]
                if known is not None and not math.isnan(known.low)
                else None
                for known in self.differences
            ],
        }


def horizon(arms: Sequence[Arm]) -> int:
    """The last step that all runs with any step have recorded; 0 if an arm has no such run."""
    reached = [[run.last for run in arm.independent if run.last] for arm in arms]
    return min(map(min, reached)) if reached and all(reached) else 0


def verdicts(arms: Sequence[Arm], step: int) -> list[Verdict]:
    """The rows of `MEASURES` that at least one arm has, taken at `step`.

    Intervals are Welch's at 95% over seeds. Runs of different arms are not paired, since an equal
    seed does not make them play the same tasks.
    """
    rows = []
    for measure in MEASURES:
        samples = [
            [
                value
                for run in arm.independent
                if (value := reduced(run.series(measure.diagnostic), measure.how, step)) is not None
            ]
            for arm in arms
        ]
        if not any(samples):
            continue
        against: list[Estimate | None] = [None]
        against += [difference(sample, samples[0], paired=False) for sample in samples[1:]]
        words = ["compared with" if samples[0] else _missing(arms[0], measure, step)]
        for arm, estimate, sample in zip(arms[1:], against[1:], samples[1:], strict=True):
            lacking = [a for a, known in ((arms[0], samples[0]), (arm, sample)) if not known]
            if lacking or estimate is None:
                words.append(_missing(lacking[0], measure, step))
                continue
            word = said(estimate, len(sample), len(samples[0]))
            other = measure.diagnostic in OTHERWISE and are_mixed((arms[0], arm))
            words.append(f"not the same measure: {word}" if other else word)
        rows.append(Verdict(measure, [interval(sample) for sample in samples], against, words))
    return rows


def _missing(arm: Arm, measure: Measure, step: int) -> str:
    """Why an arm has no value."""
    valid = [points for run in arm.runs if (points := _up_to(run.series("validity"), step))]
    none = [0.0 in (early(points, step), late(points, step)) for points in valid]
    return "no valid task" if measure.on_tasks and none and all(none) else "not recorded"


def _up_to(series: Series, last: int) -> Series:
    return [(step, value) for step, value in series if step <= last]


def reduced(series: Series, how: str, last: int) -> float | None:
    """A series up to step `last` as one number by a take of `TAKES`; None if it has no value."""
    points = _up_to(series, last)
    if not points:
        return None
    value = TAKES[how](points, last)
    return None if math.isnan(value) else value


def said(estimate: Estimate, n: int, n_first: int) -> str:
    """The difference in plain words: higher, lower, no difference shown, or no verdict."""
    seeds = f"n={n}" if n == n_first else f"n={n} and {n_first}"
    if math.isnan(estimate.low):
        return f"no verdict: one seed ({seeds})"
    if estimate.low == estimate.high == 0.0:
        return f"the same ({seeds})"
    if estimate.low > 0.0:
        return f"higher ({seeds})"
    if estimate.high < 0.0:
        return f"lower ({seeds})"
    return f"no difference shown ({seeds})"
