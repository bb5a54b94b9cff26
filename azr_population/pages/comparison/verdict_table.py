"""The verdict table: the value of each arm by measure, and its difference from the first arm."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from azr_population.domains.measure import Measure
from azr_population.pages.comparison.azr_log import OTHERWISE
from azr_population.pages.comparison.inputs import Arm, are_mixed, domains_of
from azr_population.runs.diagnostics import Estimate, Series, difference, find_measure, interval
from azr_population.runs.diagnostics.takes import TAKES, early, late

_TAKEN = {
    "end": "at the end",
    "late": "last tenth of the steps",
    "change": "change",
    "gain": "gain since the first",
}


@dataclass(frozen=True)
class Taken:
    """A measure reduced to one number per run by a take of `TAKES`: see `summarize`."""

    measure: Measure
    take: str
    remark: str = ""

    @property
    def title(self) -> str:
        """`Solve rate, change`; of what grows the end goes without saying."""
        taken = "" if self.measure.grows else f", {_TAKEN[self.take]}"
        return f"{self.measure.title}{taken}{self.remark}"

    @property
    def on_tasks(self) -> bool:
        """Whether it needs valid tasks."""
        return self.measure.name != "validity" and not self.measure.rare


ROWS = (
    Taken(find_measure("validation"), "end"),
    Taken(find_measure("validation"), "gain"),
    Taken(find_measure("benchmarks"), "end"),
    Taken(find_measure("exam_mean"), "end"),
    Taken(find_measure("exam_best"), "end", " (luck favours many)"),
    Taken(find_measure("solve_rate"), "late"),
    Taken(find_measure("solve_rate"), "change"),
    Taken(find_measure("coverage"), "end", ", whatever the number of tasks"),
    Taken(find_measure("coverage_per_task"), "end"),
    Taken(find_measure("validity"), "late"),
)


@dataclass(frozen=True)
class Verdict:
    """A row of the table; the lists have an item per arm.

    `values` and `differences` (from the first arm; None for itself) have n = 0 where there is no
    value; `words` say what the difference means.
    """

    taken: Taken
    values: list[Estimate]
    differences: list[Estimate | None]
    words: list[str]

    @property
    def unit(self) -> str:
        """Of its values: `%`, `points` for a change of a share, or none."""
        if self.taken.measure.format != "percent":
            return ""
        return "points" if self.taken.take in ("change", "gain") else "%"

    def to_json(self) -> dict[str, Any]:
        """What the page draws: `intervals` has `[mean, low, high]` per arm, null without an
        interval, and rows with the same `scale` are drawn to the same one."""
        return {
            "scale": "exam" if self.taken.measure.rare else self.taken.measure.name,
            "intervals": [
                [known.mean, known.low, known.high]
                if known is not None and not math.isnan(known.low)
                else None
                for known in self.differences
            ],
        }


def horizon(arms: Sequence[Arm]) -> int:
    """The last step that all runs with any step have recorded; 0 if an arm has no such run."""
    reached = [
        [run.last for run in arm.independent if run.last]
        for arm in arms
        if not all(run.only_evaluated for run in arm.runs)
    ]
    return min(map(min, reached)) if reached and all(reached) else 0


def verdicts(arms: Sequence[Arm], step: int) -> list[Verdict]:
    """The rows of `ROWS` that at least one arm has, taken at `step`.

    Intervals are Welch's at 95% over seeds. Runs of different arms are not paired, since an equal
    seed does not make them play the same tasks.
    """
    rows = []
    for taken in _rows(arms):
        name = taken.measure.name
        samples = [
            [
                value
                for run in arm.independent
                if (value := summarize(run.series(name), taken.take, step)) is not None
            ]
            for arm in arms
        ]
        if not any(samples):
            continue
        against: list[Estimate | None] = [None]
        against += [difference(sample, samples[0], paired=False) for sample in samples[1:]]
        words = ["compared with" if samples[0] else _missing(arms[0], taken, step)]
        for arm, estimate, sample in zip(arms[1:], against[1:], samples[1:], strict=True):
            lacking = [a for a, known in ((arms[0], samples[0]), (arm, sample)) if not known]
            if lacking or estimate is None:
                words.append(_missing(lacking[0], taken, step))
                continue
            word = verdict_text(estimate, len(sample), len(samples[0]))
            pair = (arms[0], arm)
            other = name in OTHERWISE and are_mixed(pair)
            other |= len({run.conditions(name) for one in pair for run in one.independent}) > 1
            words.append(f"not the same measure: {word}" if other else word)
        rows.append(Verdict(taken, [interval(sample) for sample in samples], against, words))
    return rows


def _rows(arms: Sequence[Arm]) -> list[Taken]:
    """`ROWS`, in front of coverage those of the measures of the arms' domains."""
    own = {one.name: one for domain in domains_of(arms) for one in domain.measures}
    place = next(i for i, row in enumerate(ROWS) if row.measure.name == "coverage")
    return [*ROWS[:place], *(Taken(one, "change") for one in own.values()), *ROWS[place:]]


def _missing(arm: Arm, taken: Taken, step: int) -> str:
    """Why an arm has no value, in two or three words."""
    valid = [points for run in arm.runs if (points := _up_to(run.series("validity"), step))]
    none = [0.0 in (early(points, step), late(points, step)) for points in valid]
    if taken.on_tasks and none and all(none):
        return "no valid task"
    return next((run.lacks(taken.measure.name) for run in arm.runs), "not recorded")


def _up_to(series: Series, last: int) -> Series:
    return [(step, value) for step, value in series if step <= last]


def summarize(series: Series, how: str, last: int) -> float | None:
    """A series up to step `last` as one number by a take of `TAKES`; None if it has no value."""
    points = _up_to(series, last)
    if not points or (how == "gain" and len(points) < 2):
        return None
    value = TAKES[how](points, last)
    return None if math.isnan(value) else value


def verdict_text(estimate: Estimate, n: int, n_first: int) -> str:
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
