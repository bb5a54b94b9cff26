"""Sentences and words that numbers make: for comparisons, recipes, figures, runs and cross-play.

Comparisons, recipes, cross-play and summaries of runs take them from here and choose what is
compared.
"""

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
    """`higher`, `lower`, `no difference shown`, or why there is no verdict; by the test's p, which
    is named where the interval excludes 0 and p, corrected, does not decide."""
    if math.isnan(test.low):
        return "no verdict" if min(test.counts) < FEWEST else "no verdict: no variance"
    if test.p < LEVEL:
        return "higher" if test.mean > 0 else "lower"
    return f"not shown, p = {test.p:.2g} by Holm" if test.sign() else "no difference shown"


def comparison_sentence(
    arm: str, than: str, measure: str, test: Estimate, pairs: int, constant: Sequence[str], end: str
) -> str:
    """A sentence on `arm` against `than`, from the test of a share of tasks; where there is no
    verdict a second one says why.

    Args:
        measure: the metric in words.
        pairs: for how many pairs p was corrected.
        constant: the arms whose seeds all have one score.
        end: what it cost and other settings, as the (first) sentence ends.
    """
    n, m = test.counts
    seeds = f"{n} seed{'s' * (n > 1)}" if n == m else f"{n} seeds against {m}"
    direction = "higher" if test.mean > 0 else "lower"
    scores = f"{abs(100 * test.mean):.1f} points {direction} than {than} on {measure}"
    if math.isnan(test.low):
        if abs(test.mean) < 1e-9:
            scores = f"as high as {than} on {measure}"
        why = "Fewer than three seeds"
        if min(n, m) >= FEWEST:
            why = f"All seeds of {' and of '.join(constant)} score the same"
        return f"No verdict: {arm} scores {scores}, {seeds}{end}. {why}: this may be chance"
    holm_note = f", p = {test.p:.2g} by Holm for {pairs} pairs" if pairs > 1 else ""
    if test.p < LEVEL:
        low, high = sorted((abs(100 * test.low), abs(100 * test.high)))  # of one sign
        return f"{arm} scores {scores} [{low:.1f}, {high:.1f}], {seeds}{holm_note}{end}"
    sd, level = test.upper_sd, LEVEL / pairs
    reach = 100 * detectable(sd, min(n, m), level)
    would = (
        f"with {min(n, m)} seeds differences above {reach:.1f} points would show in 4 of 5 cases"
    )
    if reach > 100 * WORTH:
        would += f"; {100 * WORTH:.0f} points would take {_seeds_needed(sd, level)}"
    text = interval_text(test, percent=True, signed=True)
    return (
        f"No difference is shown between {arm} and {than} on {measure}: {text}, {seeds}{holm_note};"
        f" {would}{end}"
    )


def _excluded(test: Estimate, margin: float) -> str:
    """Differences that a test without a verdict rules out, and seeds that would show `WORTH`."""
    worth = f"{100 * WORTH:.0f} points" + " beyond the margin" * (margin != 0)
    needed = _seeds_needed(test.upper_sd, test.level)
    return (
        f"; more than {100 * test.high:.1f} points is excluded, and {worth} would take {needed} "
        "seeds an arm"
    )


def _seeds_needed(sd: float, level: float) -> str:
    """Seeds of each arm that would show `WORTH`: `up to 12`."""
    needed = seeds_for(sd, WORTH, level)
    return f"up to {needed}" if needed else "perhaps more than 200"


def verdict_of(test: Estimate, margin: float, planned: int | None) -> str:
    """`shown`, `refuted`, `not shown`, or why it is `not decided`; the test's p is corrected.

    Args:
        margin: the hypothesis is that the mean is above it.
        planned: seeds of each arm at which it is decided; None for runs of other seeds or steps.
    """
    if not test.n:
        return "not decided: nothing was measured"
    if planned is None:
        return "not decided (planned for other seeds or steps)"
    if set(test.counts) != {planned}:
        return f"not decided (planned for {planned} seeds, here {counts_text(test)})"
    if math.isnan(test.p):
        return "not decided: one seed, or no variance, has no interval"
    if not test.p < LEVEL:
        return "not shown"
    return "shown" if test.mean > margin else "refuted"


def hypothesis_sentence(
    *,
    claim: str,
    row: str,
    arm: str,
    than: str,
    margin: float,
    test: Estimate,
    percent: bool,
    verdict: str,
) -> str:
    """A hypothesis as it was written, its test and what came out, in Markdown: `Two beat one. eval,
    b minus a: +2.4 points [-0.4, 5.1] (98.8% interval), n=6, p=0.1: not shown`. A share of tasks
    says what its null excludes."""
    compared = f"`{arm}`" + (f" minus `{than}`" if than else "")
    limit = f"{100 * margin:g} points" if percent else f"{margin:g}"
    text = f"{claim} {row}, {compared}" + (f" (above {limit}?)" if margin else "")
    if test.n:
        numbers = interval_text(test, percent, signed=bool(than))
        level, seeds = f"{1 - test.level:.1%} interval", counts_text(test)
        text += f": {numbers} ({level}), n={seeds}, p={test.p:.2g}"
    text += f": **{verdict}**"
    return text + _excluded(test, margin) if percent and verdict == "not shown" else text


def counts_text(test: Estimate) -> str:
    """`6`, or `6 and 5` where the arms have different numbers of seeds."""
    return " and ".join(map(str, dict.fromkeys(test.counts)))


def change_sentence(lead: str, ends: str, test: Estimate, percent: bool, over: str) -> str:
    """`Programs grew: 6.9 to 8.1 lines, +1.20 [0.60, 1.80] (95%, over steps)`.

    Args:
        ends: the first and the last value in words.
        test: of the change; its observations are `over` so.
    """
    basis = "no interval" if test.sign() is None else f"95%, over {over}"
    return f"{lead}: {ends}, {interval_text(test, percent, signed=True)} ({basis})"


_CROSS_PLAY = {
    "student": "of the earliest teachers' tasks solved",
    "teacher": "of their tasks left unsolved by the earliest students",
}


def progress_sentence(run: str, role: str, first: int, last: int, change: Estimate) -> str:
    """Late members of a role against early ones, by step, on tasks of the other side's earliest;
    the change is one of a share of tasks."""
    points = interval_text(change, percent=True, signed=True)
    sides = f"{role}s of step {last} against those of step {first}"
    return f"{run}: {sides}: {points} {_CROSS_PLAY[role]}"


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
        return f"{next(iter(groups))} in all arms"
    return "; ".join(f"{word} with {joined(names)}" for word, names in groups.items())


def with_article(name: str) -> str:
    """`the single agent`, and `1T+1S`."""
    return f"the {name}" if name[:1].islower() else name


def joined(names: Sequence[str]) -> str:
    """`a, b and c`."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
