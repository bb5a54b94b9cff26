"""Measures of arms: a number for each seed, and why one has none.

Every run that was given counts or is named. A run that ended early or diverged counts as the worst
score; what was not measured alike, or may not have been, is never subtracted. A value "at the end"
is of the last step at which all runs that got that far were measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from azr_population.analysis.inputs import ComparedArm, conditions
from azr_population.analysis.metrics import MetricSamples
from azr_population.analysis.sentences import difference_words, in_sentence
from azr_population.analysis.statistics import NOTHING, REDUCERS, Estimate, with_holm
from azr_population.domains.metric import Metric
from azr_population.reading.run_data import RunData
from azr_population.runs.azr_log import MEASURED_DIFFERENTLY

PRIMARY_METRICS = ("validation", "benchmark/pass@1", "eval/greedy")
"""Metrics by which an arm is better: the first that both arms have and measured alike counts."""
_REDUCED = {"last_10pct": "last tenth of the steps", "change": "change"}


@dataclass(frozen=True)
class Measured:
    """A metric of an arm."""

    samples: Mapping[str, float]
    """A number per seed, by the run's path."""
    failed: Mapping[str, str]
    """Seeds that ended early or diverged, and how."""
    unknown: Mapping[str, str]
    """Seeds without a value for another reason."""
    missing: str = ""
    """Why the arm has no value; else empty."""


@dataclass(frozen=True)
class ComparedMetric:
    """A metric of all arms; lists have an item per arm."""

    arms: Sequence[ComparedArm]
    metric: Metric
    step: int
    """At which it is compared; 0 where it has no steps."""
    measured: Sequence[Measured]

    @property
    def title(self) -> str:
        reduce = self.metric.reduce
        if reduce != "last":
            return f"{self.metric.title}, {_REDUCED.get(reduce, reduce)}"
        return f"{self.metric.title}, step {self.step}" if self.step else self.metric.title

    @cached_property
    def samples(self) -> MetricSamples:
        """The numbers alone, by the arms' names."""
        by_arm = {a.name: m.samples for a, m in zip(self.arms, self.measured, strict=True)}
        return MetricSamples(self.metric, self.metric.reduce, by_arm)

    def value(self, arm: int) -> Estimate:
        """The mean of an arm with its interval."""
        return self.samples.value(self.arms[arm].name)

    @cached_property
    def tests(self) -> dict[tuple[int, int], Estimate]:
        """(arm, than) -> the difference of all pairs that may be subtracted, p uncorrected."""
        return {
            (arm, than): self.samples.difference(self.arms[arm].name, self.arms[than].name)
            for than, arm in combinations(range(len(self.arms)), 2)
            if not self.why_not(arm, than)
        }

    @cached_property
    def corrected(self) -> dict[tuple[int, int], Estimate]:
        """`tests` with Holm's p for the number of pairs, or of all tests of the table (see
        `correct_table`)."""
        return with_holm(self.tests)

    def why_not(self, arm: int, than: int) -> str:
        """Why two arms are not compared; empty where they are."""
        for index in (than, arm):
            measured, name = self.measured[index], self.arms[index].name
            if measured.missing:
                return f"{name} has {measured.missing}"
            if measured.unknown:
                run, why = next(iter(measured.unknown.items()))
                return f"{run} of {name} {why}; --drop-failed leaves it out"
        return not_comparable(self.metric, self.arms[than], self.arms[arm])

    def difference(self, arm: int) -> tuple[Estimate, str]:
        """The mean of `arm` minus that of the first, and what it means in words."""
        test = self.corrected.get((arm, 0))
        if test is None:
            missing = self.measured[0].missing or self.measured[arm].missing
            return NOTHING, missing or "not the same measure"
        return test, difference_words(test)


@dataclass
class Measuring:
    """Measures arms at their common end."""

    arms: Sequence[ComparedArm]
    drop_failed: bool
    step: int = field(init=False)

    def __post_init__(self) -> None:
        self.step = min(max(run.last for run in arm.runs) for arm in self.arms)

    def row(self, metric: Metric) -> ComparedMetric:
        at = self.step
        if metric.name.startswith("benchmark"):
            at = 0
        elif metric.reduce == "last":
            steps = [
                measured
                for arm in self.arms
                for run in arm.runs
                if run.last >= self.step and (measured := self._steps(run, metric))
            ]
            at = max(set.intersection(*steps), default=self.step) if steps else self.step
        return ComparedMetric(
            self.arms, metric, at, [self._of_arm(arm, metric, at) for arm in self.arms]
        )

    def _steps(self, run: RunData, metric: Metric) -> set[int]:
        """The steps at which a run recorded something for the metric, a number or not."""
        keys = (metric.name, *(f"{role}/{metric.name}" for role in metric.roles))
        lines = (line for line in run.complete_lines if line["step"] <= self.step)
        return {line["step"] for line in lines if any(key in line for key in keys)}

    def _of_arm(self, arm: ComparedArm, metric: Metric, at: int) -> Measured:
        samples: dict[str, float] = {}
        failed: dict[str, str] = {}
        unknown: dict[str, str] = {}
        for run in arm.runs:
            value, why, has_failed = self._of_run(run, metric, at)
            if value is not None:
                samples[str(run.path)] = value
            elif has_failed:
                failed[str(run.path)] = why
            else:
                unknown[str(run.path)] = why
        if not (samples or failed) and not any("impossible" in why for why in unknown.values()):
            return Measured({}, {}, {}, _not_recorded(arm, metric))
        if not samples and not self._counts(metric):
            return Measured({}, failed, unknown, "no run that got to the end")
        if self.drop_failed:
            missing = "" if samples else "no run that got to the end"
            return Measured(samples, failed | unknown, {}, missing)
        if self._counts(metric):
            return Measured(samples | dict.fromkeys(failed, metric.least), failed, unknown)
        return Measured(samples, {}, failed | unknown)

    def _counts(self, metric: Metric) -> bool:
        """Whether a failed run counts as the worst score."""
        return metric.name in PRIMARY_METRICS and not self.drop_failed

    def _of_run(self, run: RunData, metric: Metric, at: int) -> tuple[float | None, str, bool]:
        """(its number, why there is none, whether the run failed)."""
        if metric.name.startswith("benchmark"):
            mean = run.figures.get("mean")
            if mean is None:
                return None, "has no benchmark figures", False
            if run.stale_figures:
                return None, f"has {run.stale_figures}", False
            if not metric.least <= mean <= metric.most:
                return None, f"has an impossible value, {mean:g}", False
            return float(mean), "", False
        steps = self._steps(run, metric)
        if run.last < self.step and (steps or metric.is_eval):
            return None, f"ended at step {run.last} of {self.step}", bool(steps)
        if not steps:
            return None, "has no value", False
        curve = run.curve(metric)
        within = curve.index.to_numpy() <= self.step
        recorded, values = curve.index.to_numpy()[within], curve.to_numpy()[within]
        wrong = (values < metric.least) | (values > metric.most)
        if wrong.any():
            first = int(wrong.argmax())
            shown = f"{values[first]:g} at step {recorded[first]}"
            return None, f"has an impossible value, {shown}", False
        if metric.reduce == "last" or not len(values):
            value = next(iter(values[recorded == at]), math.nan)
            reason = f"has no number at step {at}"
        else:
            value = REDUCERS[metric.reduce](curve.iloc[: len(values)], self.step)
            reason = "has no number in the steps that count"
        if math.isnan(value):
            return None, reason, metric.reduce != "last" or at in steps
        return float(value), "", False


def _not_recorded(arm: ComparedArm, metric: Metric) -> str:
    if metric.name.startswith("benchmark"):
        return "no benchmark figures"
    if not arm.runs[0].is_log:
        return f"no record of {in_sentence(metric)}"
    return "no validation in its log" if metric.name == "validation" else "none in AZR's log"


def not_comparable(metric: Metric, a: ComparedArm, b: ComparedArm) -> str:
    """Why values of the metric may not be subtracted; empty where they may."""
    runs = [(arm.name, run) for arm in (a, b) for run in arm.runs]
    if len({run.is_log for _, run in runs}) > 1 and metric.name in MEASURED_DIFFERENTLY:
        return MEASURED_DIFFERENTLY[metric.name]
    values: dict[str, set[str]] = {}
    for name, run in runs:
        for key, value in conditions(run, metric).items():
            if value is None:
                way = "AZR's console output has it" if run.is_log else "its config.yaml lacks it"
                return f"{key} of {name} is unknown ({way})"
            values.setdefault(key, set()).add(value)
    differing = [key for key, different in values.items() if len(different) > 1]
    return f"{', '.join(differing)} differ{'s' * (len(differing) == 1)}" if differing else ""
