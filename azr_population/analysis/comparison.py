"""Arms side by side: which is better, by how much, at what cost.

A value "at the end" is of the last step at which both arms have it, in the last tenth of the steps
that all runs have; where there is none, there is no difference. What was not measured alike is
never subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from azr_population.analysis.azr_log import OTHERWISE
from azr_population.analysis.differences import Differences, differences, short_differences
from azr_population.analysis.inputs import ComparedArm, ComparedRun, arms_of, benchmark_mean
from azr_population.analysis.metrics import find_metric
from azr_population.analysis.statistics import (
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
NONE = Estimate(math.nan, math.nan, math.nan, (0,))


@dataclass(frozen=True)
class ComparedMetric:
    """A metric of all arms; lists have an item per arm."""

    metric: Metric
    reduce: str
    step: int
    samples: list[dict[str, float]]
    """A number per seed."""
    missing: list[str]
    """Why an arm has no value; else empty."""

    @property
    def title(self) -> str:
        if self.reduce == "last":
            at = f", step {self.step}" if self.step else ""
            return f"{self.metric.title}{at}"
        return f"{self.metric.title}, {_REDUCED.get(self.reduce, self.reduce)}"

    @property
    def is_change(self) -> bool:
        return self.reduce == "change"

    def value(self, arm: int) -> Estimate:
        return interval(self.samples[arm]) if self.samples[arm] else NONE


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
    differing: Differences

    def against_first(self, row: ComparedMetric, arm: int) -> tuple[Estimate, str]:
        """The difference to the first arm and what it means in words."""
        return difference(self.arms, row, arm, 0)

    def to_json(self) -> dict[str, Any]:
        """For scripts: fractions within 0 and 1, null where there is no value."""
        return {
            "step": self.step,
            "arms": [
                {"name": arm.name, "runs": [str(run.path) for run in arm.runs]} for arm in self.arms
            ],
            "pairs": [
                {
                    **{"arm": pair.arm, "than": pair.than, "sentence": pair.sentence},
                    **{"metric": pair.metric.name if pair.metric else None, "tokens": pair.tokens},
                    "difference": pair.difference.to_json(),
                }
                for pair in self.pairs
            ],
            "metrics": [
                {
                    **{"metric": row.metric.name, "reduce": row.reduce, "step": row.step},
                    "better": row.metric.better,
                    "arms": {
                        arm.name: {**row.value(i).to_json(), **self._difference_json(row, i)}
                        for i, arm in enumerate(self.arms)
                    },
                }
                for row in self.rows
            ],
            "warnings": list(self.differing.warnings),
        }

    def _difference_json(self, row: ComparedMetric, arm: int) -> dict[str, Any]:
        if arm == 0:
            return {"difference": None, "verdict": row.missing[0]}
        test, words = self.against_first(row, arm)
        return {"difference": test.to_json(), "verdict": words}


def compare_arms(arguments: Sequence[str]) -> Comparison:
    """Compares the runs that the arguments name (see `arms_of`). Raises UserError: the arguments do
    not name two arms."""
    arms = arms_of(arguments)
    step = common_step(arms)
    rows = compared_metrics(arms, step)
    pairs = [_pair(arms, rows, b, a, step) for a, b in combinations(range(len(arms)), 2)]
    return Comparison(arms, step, rows, pairs, differences(arms, step))


def common_step(arms: Sequence[ComparedArm]) -> int:
    """The last step that all runs with any step have recorded; 0 where an arm has no such run."""
    reached = [
        [run.last for run in arm.independent if run.last]
        for arm in arms
        if any(run.has_steps for run in arm.runs)
    ]
    return min(map(min, reached)) if reached and all(reached) else 0


def compared_metrics(arms: Sequence[ComparedArm], step: int) -> list[ComparedMetric]:
    """The metrics that at least one arm has a value of, up to `step`."""
    domains = {run.domain for arm in arms for run in arm.runs if run.domain is not None}
    domain_metrics = {m.name: m for domain in domains for m in domain.measures}
    metrics = [*map(find_metric, _BEFORE), *domain_metrics.values(), *map(find_metric, _AFTER)]
    rows = [_compared(arms, metric, step) for metric in metrics]
    return [row for row in rows if any(row.samples)]


def _compared(arms: Sequence[ComparedArm], metric: Metric, step: int) -> ComparedMetric:
    if metric.name.startswith("benchmark"):
        samples = [
            {
                str(run.path): value
                for run in arm.independent
                if (value := benchmark_mean(run.figures)) is not None
            }
            for arm in arms
        ]
        missing = ["" if sample else "no benchmark figures" for sample in samples]
        return ComparedMetric(metric, "last", 0, samples, missing)
    curves = [
        {
            str(run.path): points[points.index <= step]
            for run in arm.independent
            if len(points := run.curve(metric))
        }
        for arm in arms
    ]
    recorded = [bool(of_arm) for of_arm in curves]
    at = step
    if metric.reduce == "last":
        at = _last_common(curves, step)
        samples = [{k: float(c[at]) for k, c in of.items() if at in c.index} for of in curves]
    else:
        reduced = [
            {k: REDUCERS[metric.reduce](c, step) for k, c in of.items() if len(c)} for of in curves
        ]
        samples = [{k: v for k, v in of.items() if not math.isnan(v)} for of in reduced]
    missing = [
        "" if sample else f"no value at step {at}" if has_values else _why(arm, metric)
        for arm, sample, has_values in zip(arms, samples, recorded, strict=True)
    ]
    return ComparedMetric(metric, metric.reduce, at, samples, missing)


def _last_common(curves: Sequence[dict[str, Any]], step: int) -> int:
    """The last step near the end at which all arms with a value near the end have one; else
    `step`."""
    near = [
        [{s for s in points.index if s > step - tenth(step)} for points in of.values()]
        for of in curves
    ]
    ends = [
        set.intersection(*measured)
        for of in near
        if (measured := [steps_of_run for steps_of_run in of if steps_of_run])
    ]
    return max(set.intersection(*ends), default=step) if ends else step


def _why(arm: ComparedArm, metric: Metric) -> str:
    run = arm.runs[0]
    if not run.has_steps:
        return "only benchmarked"
    if run.is_log:
        return "not in AZR's log" if metric.name != "validation" else "not validated"
    return "not recorded"


def not_comparable(metric: Metric, a: ComparedArm, b: ComparedArm) -> str:
    """Why values of the metric may not be subtracted; empty where they may."""
    kinds = {run.is_log for arm in (a, b) for run in arm.independent if run.has_steps}
    if len(kinds) > 1 and metric.name in OTHERWISE:
        return OTHERWISE[metric.name]
    values_by_key: dict[str, set[Any]] = {}
    for arm in (a, b):
        for run in arm.independent:
            for key, value in run.conditions(metric).items():
                values_by_key.setdefault(key, set()).add(value)
    differing = [key for key, values in values_by_key.items() if len(values) > 1]
    return f"{', '.join(differing)} differ{'s' * (len(differing) == 1)}" if differing else ""


def difference(
    arms: Sequence[ComparedArm], row: ComparedMetric, arm: int, than: int
) -> tuple[Estimate, str]:
    """The mean of `arm` minus that of `than` with Welch's interval (an equal seed does not make two
    arms play the same tasks), and what it means in words."""
    for i in (than, arm):
        if row.missing[i]:
            return NONE, row.missing[i]
    if not_comparable(row.metric, arms[than], arms[arm]):
        return NONE, "not the same measure"
    a, b = row.samples[arm], row.samples[than]
    test = compare(a, b, False, permute=False)
    if math.isnan(test.low):
        return test, "no verdict: one seed"
    if test.low > 0:
        return test, "higher"
    return test, "lower" if test.high < 0 else "no difference shown"


def tokens_of(run: ComparedRun, step: int) -> float | None:
    """Tokens generated by all members up to `step`; None where unknown."""
    table = run.table
    rows = table[(table["metric"] == "total/generated_tokens") & (table["step"] <= step)]
    return float(rows["value"].sum()) if len(rows) else None


def _mean_tokens(arm: ComparedArm, step: int) -> float | None:
    tokens = [value for run in arm.independent if (value := tokens_of(run, step))]
    return sum(tokens) / len(tokens) if tokens else None


def _pair(
    arms: Sequence[ComparedArm], rows: Sequence[ComparedMetric], arm: int, than: int, step: int
) -> Pair:
    """The sentence of two arms, by the first measure of skill that both have."""
    first, other = arms[arm], arms[than]
    spent, base = _mean_tokens(first, step), _mean_tokens(other, step)
    tokens = spent / base if spent and base else None
    reason = "neither has a measure of skill"
    chosen: tuple[ComparedMetric, Estimate, str] | None = None
    for row in rows:
        if row.metric.name not in SKILL:
            continue
        test, words = difference(arms, row, arm, than)
        if not math.isnan(test.mean):
            chosen = (row, test, words)
            break
        if words == "not the same measure":
            why = not_comparable(row.metric, other, first)
            reason = f"{row.metric.title.lower()} is not the same measure: {why}"
        else:
            lacking = other if row.missing[than] else first
            reason = f"{lacking.name} has {words} of {row.metric.title.lower()}"
    cost = f"at {tokens:.1f} times the tokens" if tokens else "tokens unknown"
    settings = short_differences(first, other)
    end = f", {cost}{f'; {settings}' if settings else ''}"
    if chosen is None:
        sentence = f"{first.name} and {other.name} cannot be compared: {reason}{end}"
        return Pair(first.name, other.name, None, NONE, tokens, sentence)
    row, test, _ = chosen
    where = row.metric.title[0].lower() + row.metric.title[1:]
    where = where if not where.startswith("aZR") else row.metric.title
    n, m = test.counts
    seeds = f"{n} seeds" if n == m else f"{n} seeds against {m}"
    if math.isnan(test.low):
        way = "higher" if test.mean > 0 else "lower"
        verdict_text = (
            f"{first.name} scores {abs(100 * test.mean):.1f} points {way} than {other.name} on "
            f"{where} at step {row.step or step}; with one seed this may be chance"
        )
    elif test.low > 0 or test.high < 0:
        way, sign = ("higher", 1) if test.low > 0 else ("lower", -1)
        low, high = sorted((sign * 100 * test.low, sign * 100 * test.high))
        verdict_text = (
            f"{first.name} scores {abs(100 * test.mean):.1f} points {way} than {other.name} on "
            f"{where} [{low:.1f}, {high:.1f}], {seeds}"
        )
    else:
        text = interval_text(test, percent=True, signed=True)
        verdict_text = (
            f"No difference is shown between {first.name} and {other.name} on {where}: {text}, "
            f"{seeds}"
        )
    return Pair(first.name, other.name, row.metric, test, tokens, verdict_text + end)
