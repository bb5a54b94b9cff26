"""Arms side by side: which is better, by how much, at what cost.

A value "at the end" is of the last step at which both arms have it, in the last tenth of the steps
that all runs have; where there is none, there is no difference. What was not measured alike is
never subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from azr_population.analysis.azr_log import OTHERWISE
from azr_population.analysis.differences import Difference, differences, short_differences
from azr_population.analysis.inputs import ComparedArm, arms_of
from azr_population.analysis.metrics import all_metrics
from azr_population.analysis.statistics import (
    NOTHING,
    REDUCERS,
    Estimate,
    compare,
    interval,
    interval_text,
    tenth,
)
from azr_population.domains.metric import Metric

SKILL = ("validation", "benchmark/pass@1", "eval/greedy")
"""What says which arm is better: the first of these that both arms have and measured alike."""
_BEFORE = (*SKILL, "eval/best", "solve_rate")
_AFTER = ("coverage", "coverage_per_task", "valid_frac")
_REDUCED = {"last_10pct": "last tenth of the steps", "change": "change"}


@dataclass(frozen=True)
class ComparedMetric:
    """A metric of all arms; lists have an item per arm."""

    arms: Sequence[ComparedArm]
    metric: Metric
    step: int
    """At which it is compared; 0 where it has no steps."""
    samples: list[dict[str, float]]
    """A number per seed."""
    missing: list[str]
    """Why an arm has no value; else empty."""

    @property
    def title(self) -> str:
        reduce = self.metric.reduce
        if reduce != "last":
            return f"{self.metric.title}, {_REDUCED.get(reduce, reduce)}"
        return f"{self.metric.title}, step {self.step}" if self.step else self.metric.title

    def value(self, arm: int) -> Estimate:
        return interval(self.samples[arm])

    def difference(self, arm: int, than: int = 0) -> tuple[Estimate, str]:
        """The mean of `arm` minus that of `than` with Welch's interval (an equal seed does not make
        two arms play the same tasks), and what it means in words."""
        if missing := self.missing[than] or self.missing[arm]:
            return NOTHING, missing
        if not_comparable(self.metric, self.arms[than], self.arms[arm]):
            return NOTHING, "not the same measure"
        test = compare(self.samples[arm], self.samples[than], False)
        if math.isnan(test.low):
            return test, "no verdict: one seed"
        if test.low > 0:
            return test, "higher"
        return test, "lower" if test.high < 0 else "no difference shown"


@dataclass(frozen=True)
class Pair:
    """One arm against another."""

    arm: str
    than: str
    metric: Metric | None
    difference: Estimate
    """Of `arm` minus `than`; without a mean where they cannot be compared."""
    tokens: float | None
    """Tokens that `arm` generated for one that `than` did."""
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """Everything that the page, the terminal and scripts show."""

    arms: Sequence[ComparedArm]
    step: int
    """The last step that all runs have recorded."""
    rows: Sequence[ComparedMetric]
    pairs: Sequence[Pair]
    differing: Sequence[Difference]
    warnings: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """For scripts: fractions within 0 and 1, null where there is no value."""

        def of_arm(row: ComparedMetric, arm: int) -> dict[str, Any]:
            test, words = row.difference(arm) if arm else (None, row.missing[0])
            difference = {"difference": test.to_json() if test else None, "verdict": words}
            return {**row.value(arm).to_json(), **difference}

        pairs = [
            {"arm": pair.arm, "than": pair.than, "sentence": pair.sentence}
            | {"metric": pair.metric.name if pair.metric else None, "tokens": pair.tokens}
            | {"difference": pair.difference.to_json()}
            for pair in self.pairs
        ]
        metrics = [
            {"metric": row.metric.name, "reduce": row.metric.reduce, "step": row.step}
            | {"better": row.metric.better}
            | {"arms": {arm.name: of_arm(row, i) for i, arm in enumerate(self.arms)}}
            for row in self.rows
        ]
        arms = [
            {"name": arm.name, "runs": [str(run.path) for run in arm.runs]} for arm in self.arms
        ]
        sections = {"step": self.step, "arms": arms, "pairs": pairs, "metrics": metrics}
        return {**sections, "warnings": list(self.warnings)}


def compare_arms(arguments: Sequence[str]) -> Comparison:
    """Compares the runs that the arguments name (see `arms_of`). Raises UserError: the arguments do
    not name two arms."""
    arms = arms_of(arguments)
    reached = [[run.last for run in arm.runs if run.last] for arm in arms]
    step = min(map(min, reached)) if all(reached) else 0
    domains = {run.domain for arm in arms for run in arm.runs if run.domain is not None}
    domain_metrics = {metric.name: metric for domain in domains for metric in domain.measures}
    before, after = ([all_metrics()[name] for name in names] for names in (_BEFORE, _AFTER))
    metrics = [*before, *domain_metrics.values(), *after]
    rows = [row for metric in metrics if any((row := _compared(arms, metric, step)).samples)]
    pairs = [_pair(arms, rows, b, a, step) for a, b in combinations(range(len(arms)), 2)]
    return Comparison(arms, step, rows, pairs, *differences(arms, step))


def _compared(arms: Sequence[ComparedArm], metric: Metric, step: int) -> ComparedMetric:
    """A metric up to `step`."""
    if metric.name.startswith("benchmark"):
        samples = [{str(r.path): r.figures["mean"] for r in arm.runs if r.figures} for arm in arms]
        missing = ["" if sample else "no benchmark figures" for sample in samples]
        return ComparedMetric(arms, metric, 0, samples, missing)
    curves = [
        {
            str(run.path): points[points.index <= step]
            for run in arm.runs
            if len(points := run.curve(metric))
        }
        for arm in arms
    ]
    at, reduce = step, REDUCERS[metric.reduce]
    if metric.reduce == "last":
        at = _last_common(curves, step)
        reduce = lambda line, _: line.get(at, math.nan)  # noqa: E731
    reduced = [
        {seed: float(reduce(line, step)) for seed, line in of_arm.items() if len(line)}
        for of_arm in curves
    ]
    samples = [{s: value for s, value in of.items() if not math.isnan(value)} for of in reduced]
    missing = [
        "" if sample else f"no value at step {at}" if of_arm else _why(arm, metric)
        for arm, sample, of_arm in zip(arms, samples, curves, strict=True)
    ]
    return ComparedMetric(arms, metric, at, samples, missing)


def _last_common(curves: Sequence[Mapping[str, pd.Series]], step: int) -> int:
    """The last step near the end at which all runs with a value near the end have one; else
    `step`."""
    lines = [set(line.index) for of_arm in curves for line in of_arm.values()]
    near_end = [near for steps in lines if (near := {s for s in steps if s > step - tenth(step)})]
    return max(set.intersection(*near_end), default=step) if near_end else step


def _why(arm: ComparedArm, metric: Metric) -> str:
    if not arm.runs[0].is_log:
        return "not recorded"
    return "not in AZR's log" if metric.name != "validation" else "not validated"


def not_comparable(metric: Metric, a: ComparedArm, b: ComparedArm) -> str:
    """Why values of the metric may not be subtracted; empty where they may."""
    runs = (*a.runs, *b.runs)
    if len({run.is_log for run in runs}) > 1 and metric.name in OTHERWISE:
        return OTHERWISE[metric.name]
    values: dict[str, set[Any]] = {}
    for run in runs:
        for key, value in run.conditions(metric).items():
            values.setdefault(key, set()).add(value)
    differing = [key for key, of_key in values.items() if len(of_key) > 1]
    return f"{', '.join(differing)} differ{'s' * (len(differing) == 1)}" if differing else ""


def _mean_tokens(arm: ComparedArm, step: int) -> float:
    """Tokens generated by all members up to `step`; NaN where unknown."""
    name = "total/generated_tokens"
    curves = [line[line.index <= step] for run in arm.runs if len(line := run.curve(name))]
    return float(pd.Series([line.sum() for line in curves if line.sum()], dtype=float).mean())


def _pair(
    arms: Sequence[ComparedArm], rows: Sequence[ComparedMetric], arm: int, than: int, step: int
) -> Pair:
    """The sentence of two arms, by the first measure of skill that both have."""
    first, other = arms[arm], arms[than]
    ratio = _mean_tokens(first, step) / _mean_tokens(other, step)
    tokens = None if math.isnan(ratio) else ratio
    cost = f"at {tokens:.1f} times the tokens" if tokens else "tokens unknown"
    settings = short_differences(first, other)
    end = f", {cost}{f'; {settings}' if settings else ''}"
    reason = "neither has a measure of skill"
    for row in (row for row in rows if row.metric.name in SKILL):
        title = row.metric.title
        title = title if title.startswith("AZR") else title[0].lower() + title[1:]
        test, words = row.difference(arm, than)
        if not math.isnan(test.mean):
            said = f"{_verdict(first.name, other.name, title, test, row.step or step)}{end}"
            return Pair(first.name, other.name, row.metric, test, tokens, said)
        if words == "not the same measure":
            why = not_comparable(row.metric, other, first)
            reason = f"{row.metric.title.lower()} is not the same measure: {why}"
        else:
            lacking = other if row.missing[than] else first
            reason = f"{lacking.name} has {words} of {row.metric.title.lower()}"
    said = f"{first.name} and {other.name} cannot be compared: {reason}{end}"
    return Pair(first.name, other.name, None, NOTHING, tokens, said)


def _verdict(arm: str, than: str, title: str, test: Estimate, step: int) -> str:
    n, m = test.counts
    seeds = f"{n} seeds" if n == m else f"{n} seeds against {m}"
    if test.low <= 0 <= test.high:
        text = interval_text(test, percent=True, signed=True)
        return f"No difference is shown between {arm} and {than} on {title}: {text}, {seeds}"
    way = "higher" if test.mean > 0 else "lower"
    said = f"{arm} scores {abs(100 * test.mean):.1f} points {way} than {than} on {title}"
    if math.isnan(test.low):
        return f"{said} at step {step}; with one seed this may be chance"
    low, high = sorted((abs(100 * test.low), abs(100 * test.high)))  # of one sign
    return f"{said} [{low:.1f}, {high:.1f}], {seeds}"
