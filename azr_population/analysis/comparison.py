"""Arms side by side: which is better, by how much, at what cost.

Every run that was given counts or is named. A run that ended early or diverged counts as the worst
score; what was not measured alike, or may not have been, is never subtracted. A value "at the end"
is of the last step at which all runs that got that far were measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from azr_population.analysis.differences import Difference, differences, short_differences
from azr_population.analysis.inputs import ComparedArm, arms_of, conditions
from azr_population.analysis.metrics import all_metrics, own_metrics
from azr_population.analysis.statistics import (
    FEWEST,
    LEVEL,
    NOTHING,
    REDUCERS,
    Estimate,
    compare,
    detectable,
    far_apart,
    holm,
    interval,
    interval_text,
    seeds_for,
)
from azr_population.domains.metric import Metric
from azr_population.errors import UserError
from azr_population.runs.azr_log import MEASURED_DIFFERENTLY
from azr_population.runs.run_data import RunData

PRIMARY_METRICS = ("validation", "benchmark/pass@1", "eval/greedy")
"""What says which arm is better: the first of these that both arms have and measured alike."""
_BEFORE = (*PRIMARY_METRICS, "eval/best", "solve_rate")
_AFTER = ("coverage", "coverage_per_task", "valid_frac")
_REDUCED = {"last_10pct": "last tenth of the steps", "change": "change"}
_WORTH = 0.03
"""The difference for which a sentence names the seeds that would show it."""


K = TypeVar("K")


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

    def value(self, arm: int) -> Estimate:
        bounds = self.metric.bounds(self.metric.reduce)
        return interval(self.measured[arm].samples).within(*bounds)

    @cached_property
    def tests(self) -> dict[tuple[int, int], Estimate]:
        """(arm, than) -> the mean difference of all pairs that may be subtracted, p uncorrected. An
        equal seed does not make two arms play the same tasks, so seeds are not paired."""
        tests = {}
        for than, arm in combinations(range(len(self.arms)), 2):
            if not self.why_not(arm, than):
                a, b = (self.measured[place].samples for place in (arm, than))
                tests[arm, than] = compare(a, b, False)
        return tests

    @cached_property
    def corrected(self) -> dict[tuple[int, int], Estimate]:
        """`tests` with Holm's p for the number of pairs, or of all tests of the table (see
        `correct_table`)."""
        return with_holm(self.tests)

    def why_not(self, arm: int, than: int) -> str:
        """Why two arms are not compared; empty where they are."""
        for place in (than, arm):
            measured, name = self.measured[place], self.arms[place].name
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
        if math.isnan(test.low):
            few = min(test.counts) < FEWEST  # as the sentence and the heads of the columns say
            return test, "no verdict" if few else "no verdict: no variance"
        if not test.p < LEVEL:
            return test, "no difference shown"
        return test, "higher" if test.mean > 0 else "lower"


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

    @property
    def badge(self) -> str:
        """`better`, `worse`, `no difference shown`, `no verdict` or `not compared`."""
        if self.metric is None:
            return "not compared"
        if math.isnan(self.difference.low):
            return "no verdict"
        if not self.difference.p < LEVEL:
            return "no difference shown"
        return "better" if self.difference.mean > 0 else "worse"


@dataclass(frozen=True)
class Comparison:
    """Everything that the page, the terminal and scripts show."""

    arms: Sequence[ComparedArm]
    step: int
    """The last step that runs of all arms have recorded."""
    rows: Sequence[ComparedMetric]
    pairs: Sequence[Pair]
    differing: Sequence[Difference]
    warnings: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """For scripts: fractions within 0 and 1, null where there is no value."""

        def of_arm(row: ComparedMetric, arm: int) -> dict[str, Any]:
            measured = row.measured[arm]
            test, words = row.difference(arm) if arm else (None, measured.missing)
            difference = {"difference": test.to_json() if test else None, "verdict": words}
            left = {"failed": dict(measured.failed), "unknown": dict(measured.unknown)}
            return {**row.value(arm).to_json(), **left, **difference}

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


@dataclass
class _Measuring:
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
        recorded = False
        for run in arm.runs:
            value, why, has_failed = self._of_run(run, metric, at)
            recorded = recorded or value is not None or has_failed or "impossible" in why
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
        places, values = curve.index.to_numpy()[within], curve.to_numpy()[within]
        wrong = (values < metric.least) | (values > metric.most)
        if wrong.any():
            place = int(wrong.argmax())
            shown = f"{values[place]:g} at step {places[place]}"
            return None, f"has an impossible value, {shown}", False
        if metric.reduce == "last" or not len(values):
            value = next(iter(values[places == at]), math.nan)
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
        return f"no record of {_in_sentence(metric)}"
    return "no validation in its log" if metric.name == "validation" else "none in AZR's log"


def _in_sentence(metric: Metric) -> str:
    title = metric.title
    return title if title.startswith("AZR") else title[0].lower() + title[1:]


def compare_arms(arguments: Sequence[str], drop_failed: bool = False) -> Comparison:
    """Compares the runs that the arguments name (see `arms_of`). `drop_failed` leaves out runs that
    ended early, diverged or were not measured, and says so. Raises UserError: the arguments do not
    name two arms."""
    arms = arms_of(arguments)
    measuring = _Measuring(arms, drop_failed)
    measures = own_metrics(run for arm in arms for run in arm.runs)
    before, after = ([all_metrics()[name] for name in names] for names in (_BEFORE, _AFTER))
    rows = [measuring.row(metric) for metric in (*before, *measures, *after)]
    rows = [row for row in rows if any(of_arm.samples for of_arm in row.measured)]
    rows = [row for row in rows if not _repeats(row, rows)]
    correct_table(rows)
    step = measuring.step
    pairs = _pairs(arms, drop_failed)
    return Comparison(arms, step, rows, pairs, *differences(arms, step))


@dataclass(frozen=True)
class SeedPlan:
    """What seeds would show, from how much runs of one arm differ."""

    sd: float
    """The standard deviation of the score over seeds."""
    spread_of: str
    """The measure and the runs that vary so."""
    pairs: Sequence[int]
    """Numbers of pairs of arms, corrected by Holm: the first verdict has the level over them."""

    SEEDS = (3, 4, 6, 8, 12, 24)
    POINTS = (5, 3, 2, 1)

    def differences(self, pairs: int) -> list[float]:
        """For each of `SEEDS` the difference that is shown with a chance of about 80%."""
        return [detectable(self.sd, n, LEVEL / pairs) for n in self.SEEDS]

    def seeds(self, pairs: int) -> dict[int, int | None]:
        """Seeds in each arm by the difference in points that they show; None: above 200."""
        return {points: seeds_for(self.sd, points / 100, LEVEL / pairs) for points in self.POINTS}

    def to_json(self) -> dict[str, Any]:
        """For scripts; differences are fractions."""
        rows = [
            {"pairs": count, "shown": dict(zip(self.SEEDS, self.differences(count), strict=True))}
            | {"seeds_for_points": self.seeds(count)}
            for count in self.pairs
        ]
        return {"sd": self.sd, "of": self.spread_of, "rows": rows}


def plan_seeds(arguments: Sequence[str], pairs: Sequence[int] = ()) -> SeedPlan:
    """What so many seeds would show, from the spread within the arms that the arguments name;
    `pairs` are by default one, and as many as these arms have. Raises UserError: no arm has two
    seeds with a score at its end."""
    arms = arms_of(arguments, fewest=1)
    for name in PRIMARY_METRICS:
        metric = all_metrics()[name]
        rows = [_Measuring([arm], drop_failed=True).row(metric) for arm in arms]
        samples = [list(row.measured[0].samples.values()) for row in rows]
        samples = [values for values in samples if len(values) > 1]
        if not samples:
            continue
        squares = sum(float(np.var(values)) * len(values) for values in samples)
        freedom = sum(len(values) - 1 for values in samples)
        runs = f"{sum(map(len, samples))} runs of {len(samples)} arm{'s' * (len(samples) > 1)}"
        pairs = pairs or sorted({1, max(math.comb(len(arms), 2), 1)})
        return SeedPlan(math.sqrt(squares / freedom), f"{_in_sentence(metric)}, {runs}", pairs)
    raise UserError(
        "no arm has two seeds with a score at its end, so how much seeds differ is unknown; "
        "compare --plan without runs takes the committed ones"
    )


def compare_skill(arms: Sequence[ComparedArm]) -> list[Pair]:
    """The sentences alone, of arms that are loaded."""
    return _pairs(arms, drop_failed=False)


def _repeats(row: ComparedMetric, rows: Sequence[ComparedMetric]) -> bool:
    """Whether a row has the numbers of the mean again, as the best of one student has."""
    mean = next((other for other in rows if other.metric.name == "eval/greedy"), row)
    same = [a.samples == b.samples for a, b in zip(row.measured, mean.measured, strict=True)]
    return row is not mean and row.metric.name == "eval/best" and all(same)


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
    differing = [key for key, of_key in values.items() if len(of_key) > 1]
    return f"{', '.join(differing)} differ{'s' * (len(differing) == 1)}" if differing else ""


def correct_table(rows: Sequence[ComparedMetric]) -> None:
    """Makes the differences from the first arm, which a table shows, one family, but for the
    measures of skill, which the sentences compare: corrected within a row only, one of eight rows
    differs falsely in a fifth of tables."""
    shown = {
        (place, pair): test
        for place, row in enumerate(rows)
        for pair, test in row.tests.items()
        if pair[1] == 0 and row.metric.name not in PRIMARY_METRICS
    }
    for (place, pair), test in with_holm(shown).items():
        rows[place].corrected[pair] = test


def with_holm(tests: Mapping[K, Estimate]) -> dict[K, Estimate]:
    """The tests as one family."""
    corrected = holm([test.p for test in tests.values()])
    return {
        pair: replace(test, p=p) for (pair, test), p in zip(tests.items(), corrected, strict=True)
    }


def _mean_tokens(arm: ComparedArm, step: int) -> float:
    """Tokens generated by all members up to `step`; NaN where unknown or impossible."""
    curves = [run.curve("total/generated_tokens") for run in arm.runs]
    sums = [float(line[line.index <= step].sum()) for line in curves if len(line)]
    complete = len(sums) == len(arm.runs) and all((line >= 0).all() for line in curves)
    return sum(sums) / len(sums) if complete and all(sums) else math.nan


def _pairs(arms: Sequence[ComparedArm], drop_failed: bool) -> list[Pair]:
    """A sentence for each two arms, by the first measure of skill that both have, at the last step
    of these two: a third arm that is shorter does not move it. Compared pairs come first."""
    order = [(arm, than) for than, arm in combinations(range(len(arms)), 2)]
    two = {pair: _Measuring([arms[i] for i in reversed(pair)], drop_failed) for pair in order}
    skill = {
        pair: [row for row in map(measuring.row, _skill()) if any(m.samples for m in row.measured)]
        for pair, measuring in two.items()
    }
    chosen = {
        pair: row
        for pair in order
        if (row := next((row for row in skill[pair] if row.tests), None)) is not None
    }
    # Pairs may be compared by different measures, but are one family.
    tests = with_holm({pair: row.tests[1, 0] for pair, row in chosen.items()})
    pairs = []
    for pair in sorted(order, key=lambda pair: pair not in chosen):
        first, other = (arms[i] for i in pair)
        ratio = _mean_tokens(first, two[pair].step) / _mean_tokens(other, two[pair].step)
        tokens = None if math.isnan(ratio) else ratio
        cost = f"at {tokens:.1f} times the tokens" if tokens else "tokens unknown"
        settings = short_differences(first, other)
        end = f", {cost}{f'; {settings}' if settings else ''}"
        row = chosen.get(pair)
        if row is None:
            reasons = [f"{each.metric.title}: {each.why_not(1, 0)}" for each in skill[pair]]
            reason = "; ".join(reasons) or "neither has a measure of skill"
            sentence = f"{first.name} and {other.name} are not compared: {reason}{end}"
            pairs.append(Pair(first.name, other.name, None, NOTHING, tokens, sentence))
            continue
        sentence = _verdict(row, tests[pair], two[pair].step, len(chosen)) + end
        for arm, measured in zip((first, other), row.measured[::-1], strict=True):
            sentence += _left_out(arm.name, measured, drop_failed)
            if far_apart(measured.samples):
                sentence += f"; seeds of {arm.name} lie far apart, so its mean is unsure"
        pairs.append(Pair(first.name, other.name, row.metric, tests[pair], tokens, sentence))
    return pairs


def _skill() -> list[Metric]:
    return [all_metrics()[name] for name in PRIMARY_METRICS]


def _left_out(name: str, measured: Measured, dropped: bool) -> str:
    """What became of runs without a score."""
    if not measured.failed:
        return ""
    named = ", ".join(f"{run} ({why})" for run, why in measured.failed.items())
    if dropped:
        return f"; left out of {name}: {named}"
    return f"; counted as 0% in {name}: {named}; --drop-failed leaves them out"


def _verdict(row: ComparedMetric, test: Estimate, end: int, pairs: int) -> str:
    """A sentence on the second arm of the row against the first."""
    than, arm = (each.name for each in row.arms)
    n, m = test.counts
    seeds = f"{n} seed{'s' * (n > 1)}" if n == m else f"{n} seeds against {m}"
    title = _in_sentence(row.metric)
    if row.step and row.step != end:
        title += f" at step {row.step}, the last at which all have a value"
    way = "higher" if test.mean > 0 else "lower"
    scores = f"{abs(100 * test.mean):.1f} points {way} than {than} on {title}"
    if math.isnan(test.low):
        if abs(test.mean) < 1e-9:
            scores = f"as high as {than} on {title}"
        why = "fewer than three seeds"
        if min(n, m) >= FEWEST:
            equal = [a.name for a, of in zip(row.arms, row.measured, strict=True)
                     if len({*of.samples.values()}) == 1]  # fmt: skip
            why = f"all seeds of {' and of '.join(equal)} score the same"
        return f"No verdict: {arm} scores {scores}, {seeds}; {why}, this may be chance"
    holm_note = f", p = {test.p:.2g} by Holm for {pairs} pairs" if pairs > 1 else ""
    text = interval_text(test, percent=True, signed=True)
    if test.p < LEVEL:
        low, high = sorted((abs(100 * test.low), abs(100 * test.high)))  # of one sign
        return f"{arm} scores {scores} [{low:.1f}, {high:.1f}], {seeds}{holm_note}"
    reach = 100 * detectable(test.sd, min(n, m))
    wanted = seeds_for(test.sd, _WORTH)
    more = f"about {wanted}" if wanted else "more than 200"
    would = f"with {min(n, m)} seeds differences above {reach:.1f} points would show"
    if reach > 100 * _WORTH:
        would += f"; {100 * _WORTH:.0f} points would take {more}"
    return (
        f"No difference is shown between {arm} and {than} on {title}: {text}, {seeds}{holm_note}; "
        f"{would}"
    )
