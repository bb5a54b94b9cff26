"""What a recipe sets out to show, written before it is played, and every other test of its table.

The primary hypotheses are tested as they are written. All other differences of the table are one
family, corrected by Holm: with so many of them some would leave out 0 by luck.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from azr_population.experiments.recipe import LEVEL, Primary
from azr_population.runs.diagnostics import Estimate, difference, interval
from azr_population.runs.diagnostics.significance import (
    holm,
    interquartile_mean,
    p_value,
    permutation_p,
)

Values = Mapping[str, float]
"""One number per seed, by the name of the run's folder."""


@dataclass(frozen=True)
class Test:
    """One difference between two arms (or of one from 0), and how surprising it would be if it were
    the margin."""

    estimate: Estimate
    p: float
    permutation: float | None
    level: float = LEVEL
    """At which `estimate` has its interval: .05 for one of 95%."""


def test(
    a: Values, b: Values | None, paired: bool, level: float = LEVEL, margin: float = 0.0
) -> Test:
    """The difference of `a` to `b`, or to 0 where that is None; paired over the seeds of both.

    The p-values are of no difference beyond `margin`, as the verdict is, which looks whether the
    interval holds it.
    """
    if b is None:
        first, second = list(a.values()), None
        estimate = interval(first, 1 - level)
    else:
        shared = [seed for seed in a if seed in b]
        first = [a[seed] for seed in shared] if paired else list(a.values())
        second = [b[seed] for seed in shared] if paired else list(b.values())
        estimate = difference(first, second, paired, 1 - level)
    beyond = [value - margin for value in first]
    return Test(
        estimate, p_value(beyond, second, paired), permutation_p(beyond, second, paired), level
    )


def verdict(primary: Primary, estimate: Estimate, level: float | None) -> str:
    """What the interval says of the hypothesis."""
    if level is None:
        looks = ", ".join(map(str, primary.looks))
        return f"not decided: looks were planned at {looks} seeds, here are {estimate.n}"
    if math.isnan(estimate.low):
        return "not decided: one seed has no interval"
    if estimate.low > primary.margin:
        return "shown"
    return "refuted" if estimate.high < primary.margin else "not shown"


@dataclass(frozen=True)
class HypothesisResult:
    """A primary hypothesis and what came out; `test` is None where an arm has no value."""

    primary: Primary
    test: Test | None
    verdict: str
    p: float
    """Corrected for the other primary hypotheses, unless all have to hold together."""


def answers(
    primaries: Sequence[Primary],
    values: Mapping[str, Mapping[str, Values]],
    paired: bool,
    together: bool,
) -> list[HypothesisResult]:
    """The primary hypotheses tested; `values` are those of each measure by arm and seed.

    A verdict of one of several goes by the corrected level, Bonferroni's, which has intervals;
    together they are tested at the full one.
    """
    tested: list[tuple[Primary, Test | None, str]] = []
    for primary in primaries:
        of_measure = values[primary.measure]
        a, b = of_measure.get(primary.arm), of_measure.get(primary.than)
        if a is None or (primary.than and b is None):
            tested.append((primary, None, "not decided: nothing was measured"))
            continue
        level = primary.level(min(len(a), len(b or a)))
        share = 1 if together else len(primaries)
        result = test(a, b, paired, (level or LEVEL) / share, primary.margin)
        tested.append((primary, result, verdict(primary, result.estimate, level)))
    raw = [result.p if result else math.nan for _, result, _ in tested]
    corrected = raw if together else holm(raw)
    return [HypothesisResult(*one, p) for one, p in zip(tested, corrected, strict=True)]


def holm_corrected(tests: Sequence[Test]) -> list[float]:
    """The p-values of a family of tests, corrected by Holm."""
    return holm([one.p for one in tests])


def iqm(values: Values) -> Estimate | None:
    return interquartile_mean(list(values.values()))
