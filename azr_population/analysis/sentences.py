"""Sentences and words that numbers make: for comparisons, recipes, figures, runs and cross-play."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from azr_population.analysis.statistics import (
    FEWEST,
    LEVEL,
    Estimate,
    detectable,
    interval_text,
    seeds_for,
)
from azr_population.domains.metric import Metric

WORTH = 0.03
"""The difference for which a sentence names the seeds that would show it."""


def in_sentence(metric: Metric) -> str:
    """The metric's title as it stands within a sentence."""
    title = metric.title
    return title if title.startswith("AZR") else title[0].lower() + title[1:]


def difference_words(test: Estimate) -> str:
    """`higher`, `lower`, `no difference shown`, or why there is no verdict; by the test's p."""
    if math.isnan(test.low):
        return "no verdict" if min(test.counts) < FEWEST else "no verdict: no variance"
    if not test.p < LEVEL:
        return "no difference shown"
    return "higher" if test.mean > 0 else "lower"


def comparison_sentence(
    arm: str, than: str, measure: str, test: Estimate, pairs: int, constant: Sequence[str]
) -> str:
    """A sentence on `arm` against `than`, from the test of a share of tasks.

    Args:
        measure: the metric in words.
        pairs: for how many pairs p was corrected.
        constant: the arms whose seeds all have one score.
    """
    n, m = test.counts
    seeds = f"{n} seed{'s' * (n > 1)}" if n == m else f"{n} seeds against {m}"
    direction = "higher" if test.mean > 0 else "lower"
    scores = f"{abs(100 * test.mean):.1f} points {direction} than {than} on {measure}"
    if math.isnan(test.low):
        if abs(test.mean) < 1e-9:
            scores = f"as high as {than} on {measure}"
        why = "fewer than three seeds"
        if min(n, m) >= FEWEST:
            why = f"all seeds of {' and of '.join(constant)} score the same"
        return f"No verdict: {arm} scores {scores}, {seeds}; {why}, this may be chance"
    holm_note = f", p = {test.p:.2g} by Holm for {pairs} pairs" if pairs > 1 else ""
    if test.p < LEVEL:
        low, high = sorted((abs(100 * test.low), abs(100 * test.high)))  # of one sign
        return f"{arm} scores {scores} [{low:.1f}, {high:.1f}], {seeds}{holm_note}"
    sd, level = test.upper_sd, LEVEL / pairs
    reach, needed = 100 * detectable(sd, min(n, m), level), seeds_for(sd, WORTH, level)
    would = (
        f"with {min(n, m)} seeds differences above {reach:.1f} points would show in 4 of 5 cases"
    )
    if reach > 100 * WORTH:
        more = f"up to {needed}" if needed else "perhaps more than 200"
        would += f"; {100 * WORTH:.0f} points would take {more}"
    text = interval_text(test, percent=True, signed=True)
    return (
        f"No difference is shown between {arm} and {than} on {measure}: {text}, {seeds}{holm_note};"
        f" {would}"
    )


def excluded(test: Estimate, margin: float) -> str:
    """Differences that a test without a verdict rules out, and seeds that would show `WORTH`."""
    seeds = seeds_for(test.sd, WORTH, test.level) or "above 200"
    worth = f"{100 * WORTH:.0f} points" + " beyond the margin" * (margin != 0)
    return (
        f"; more than {100 * test.high:.1f} points is excluded, and {worth} would take {seeds} "
        "seeds an arm"
    )


SIGNS = {
    "change": {0: "no change shown", 1: "up", -1: "down"},
    "level": {0: "no difference shown", 1: "above", -1: "below"},
    "ratio": {0: "no difference shown", 1: "more", -1: "less"},
}
"""Words for intervals that have a reference inside (0), lie above it (1) and below it (-1)."""


def sign_word(sign: int | None, kind: str) -> str:
    """The word for a sign of `Estimate.sign`; `kind` is one of `SIGNS`."""
    return "no interval" if sign is None else SIGNS[kind][sign]


def grouped_by_sign(signs: Mapping[str, int | None], kind: str) -> str:
    """`up with the single agent and the pair; no change shown with the frozen teacher`, by name
    a sign as of `sign_word`."""
    groups: dict[str, list[str]] = {}
    for name, sign in signs.items():
        groups.setdefault(sign_word(sign, kind), []).append(with_article(name))
    if len(groups) == 1 and len(signs) > 2:
        return f"{next(iter(groups))} with all"
    return "; ".join(f"{word} with {joined(names)}" for word, names in groups.items())


def with_article(name: str) -> str:
    """`the single agent`, and `1T+1S`."""
    return f"the {name}" if name[:1].islower() else name


def joined(names: Sequence[str]) -> str:
    """`a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
