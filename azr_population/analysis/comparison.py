"""Arms side by side: which is better, by how much, at what cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from azr_population.analysis.differences import Difference, differences, short_differences
from azr_population.analysis.inputs import ComparedArm, arms_of
from azr_population.analysis.measuring import PRIMARY_METRICS, ComparedMetric, Measured, Measuring
from azr_population.analysis.metrics import all_metrics, own_metrics
from azr_population.analysis.sentences import comparison_sentence, difference_words, in_sentence
from azr_population.analysis.statistics import NOTHING, Estimate, far_apart, with_holm
from azr_population.domains.metric import Metric

_BEFORE = (*PRIMARY_METRICS, "eval/best", "solve_rate")
_AFTER = ("coverage", "coverage_per_task", "valid_frac")


@dataclass(frozen=True)
class Pair:
    """One arm against another."""

    arm: str
    than: str
    metric: Metric | None
    difference: Estimate
    """The mean of `arm` minus that of `than`; no mean where they cannot be compared."""
    tokens: float | None
    """Tokens that `arm` generated for one that `than` did."""
    sentence: str

    @property
    def badge(self) -> str:
        """`better`, `worse`, `no difference shown`, `no verdict` or `not compared`."""
        if self.metric is None:
            return "not compared"
        badges = {"higher": "better", "lower": "worse", "no verdict": "no verdict"}
        words = difference_words(self.difference).partition(":")[0]
        return badges.get(words, "no difference shown")


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

        def arm_json(row: ComparedMetric, arm: int) -> dict[str, Any]:
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
            | {"arms": {arm.name: arm_json(row, i) for i, arm in enumerate(self.arms)}}
            for row in self.rows
        ]
        arms = [
            {"name": arm.name, "runs": [str(run.path) for run in arm.runs]} for arm in self.arms
        ]
        sections = {"step": self.step, "arms": arms, "pairs": pairs, "metrics": metrics}
        return {**sections, "warnings": list(self.warnings)}


def compare_arms(arguments: Sequence[str], drop_failed: bool = False) -> Comparison:
    """Compares the runs that the arguments name (see `arms_of`). `drop_failed` leaves out runs that
    ended early, diverged or were not measured, and says so. Raises UserError: the arguments do not
    name two arms."""
    arms = arms_of(arguments)
    measuring = Measuring(arms, drop_failed)
    measures = own_metrics(run for arm in arms for run in arm.runs)
    before, after = ([all_metrics()[name] for name in names] for names in (_BEFORE, _AFTER))
    rows = [measuring.row(metric) for metric in (*before, *measures, *after)]
    rows = [row for row in rows if any(measured.samples for measured in row.measured)]
    rows = [row for row in rows if not _repeats(row, rows)]
    correct_table(rows)
    step = measuring.step
    pairs = compare_pairs(arms, drop_failed)
    return Comparison(arms, step, rows, pairs, *differences(arms, step))


def _repeats(row: ComparedMetric, rows: Sequence[ComparedMetric]) -> bool:
    """Whether a row has the numbers of the mean again, as the best of one student has."""
    mean = next((other for other in rows if other.metric.name == "eval/greedy"), row)
    same = [a.samples == b.samples for a, b in zip(row.measured, mean.measured, strict=True)]
    return row is not mean and row.metric.name == "eval/best" and all(same)


def correct_table(rows: Sequence[ComparedMetric]) -> None:
    """Makes the differences from the first arm, which a table shows, one family, but for the
    measures of skill, which the sentences compare: corrected within a row only, one of eight rows
    differs falsely in a fifth of tables. Its p is doubled beside that of the sentences, without
    which some verdict of a page is false in 7.6% of cases."""
    shown = {
        (number, pair): test
        for number, row in enumerate(rows)
        for pair, test in row.tests.items()
        if pair[1] == 0 and row.metric.name not in PRIMARY_METRICS
    }
    for (number, pair), test in with_holm(shown).items():
        rows[number].corrected[pair] = replace(test, p=min(2 * test.p, 1.0))


def _mean_tokens(arm: ComparedArm, step: int) -> float:
    """Tokens generated by all members up to `step`; NaN where unknown or impossible."""
    curves = [run.curve("total/generated_tokens") for run in arm.runs]
    sums = [float(line[line.index <= step].sum()) for line in curves if len(line)]
    complete = len(sums) == len(arm.runs) and all((line >= 0).all() for line in curves)
    return sum(sums) / len(sums) if complete and all(sums) else math.nan


def compare_pairs(arms: Sequence[ComparedArm], drop_failed: bool = False) -> list[Pair]:
    """A sentence for each two arms, by the first measure of skill that both have, at the last step
    of these two: a third arm that is shorter does not move it. Compared pairs come first."""
    order = [(arm, than) for than, arm in combinations(range(len(arms)), 2)]
    two = {pair: Measuring([arms[i] for i in reversed(pair)], drop_failed) for pair in order}
    metrics = [all_metrics()[name] for name in PRIMARY_METRICS]
    skill = {
        pair: [row for row in map(measuring.row, metrics) if any(m.samples for m in row.measured)]
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
        measure = in_sentence(row.metric)
        if row.step and row.step != two[pair].step:
            measure += f" at step {row.step}, the last at which all have a value"
        constant = [
            arm.name
            for arm, measured in zip(row.arms, row.measured, strict=True)
            if len({*measured.samples.values()}) == 1
        ]
        names = first.name, other.name
        sentence = comparison_sentence(*names, measure, tests[pair], len(chosen), constant, end)
        for arm, measured in zip((first, other), row.measured[::-1], strict=True):
            sentence += _left_out(arm.name, measured, drop_failed)
            if far_apart(measured.samples):
                sentence += f"; seeds of {arm.name} lie far apart, so its mean is unsure"
        pairs.append(Pair(first.name, other.name, row.metric, tests[pair], tokens, sentence))
    return pairs


def _left_out(name: str, measured: Measured, dropped: bool) -> str:
    """A note on runs without a score: how they were counted."""
    if not measured.failed:
        return ""
    named = ", ".join(f"{run} ({why})" for run, why in measured.failed.items())
    if dropped:
        return f"; left out of {name}: {named}"
    return f"; counted as 0% in {name}: {named}; --drop-failed leaves them out"
