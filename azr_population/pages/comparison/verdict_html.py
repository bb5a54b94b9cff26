"""The verdicts as HTML: the intervals drawn, a sentence per arm, and a table per arm."""

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from azr_population.pages.comparison.inputs import Arm
from azr_population.pages.comparison.verdict_table import Verdict
from azr_population.pages.web.templates import empty, piece, small
from azr_population.runs.diagnostics import Estimate


def verdict_words(arms: Sequence[Arm], rows: Sequence[Verdict], step: int) -> Markup:
    """Per arm: what is higher and lower than in the first one, with intervals, then the rest."""
    if not rows:
        return empty("Nothing to compare is recorded yet.")
    return Markup("").join(
        Markup("<p><b>{}</b> against {} at step {}{}").format(
            arm.name, arms[0].name, step, _told(rows, i)
        )
        for i, arm in enumerate(arms[1:], start=1)
    )


def _told(rows: Sequence[Verdict], arm: int) -> Markup:
    kinds: dict[str, list[Verdict]] = {}
    for verdict in rows:
        kinds.setdefault(verdict.words[arm].partition(" (")[0].partition(":")[0], []).append(
            verdict
        )
    if set(kinds) == {"no verdict"}:
        why = ": no verdict, because an interval needs at least two seeds of each arm."
        return Markup("{}</p>").format(why)
    item = Markup("<li><b>{}</b>{}</li>")
    told = [
        item.format(
            kind.capitalize(), "; ".join(_with_interval(verdict, arm) for verdict in kinds[kind])
        )
        for kind in ("higher", "lower")
        if kind in kinds
    ]
    rest = "; ".join(
        f"{kind} in {len(verdicts)} of {len(rows)} measures"
        for kind, verdicts in kinds.items()
        if kind not in ("higher", "lower")
    )
    told += [item.format("Else" if told else "All", rest)] if rest else []
    return Markup(":</p><ul>{}</ul>").format(Markup("").join(told))


def _with_interval(verdict: Verdict, arm: int) -> str:
    """`lines of code, change (+1.21 [+0.76, +1.66])`."""
    title, told = verdict.taken.title, _numbers(verdict, arm)
    return f"{title[:1].lower()}{title[1:]} ({' '.join(told)})" if told else title


def _numbers(verdict: Verdict, arm: int) -> tuple[str, str] | None:
    """`+1.21 points`, `[+0.76, +1.66]`; None where there is no difference."""
    estimate = verdict.differences[arm]
    if estimate is None or math.isnan(estimate.mean):
        return None
    scale, unit = (100.0, " points") if verdict.taken.measure.format == "percent" else (1.0, "")
    mean, low, high = (
        number(scale * value, signed=True) for value in (estimate.mean, estimate.low, estimate.high)
    )
    return f"{mean}{unit}", "" if math.isnan(estimate.low) else f"[{low}, {high}]"


def forest(arms: Sequence[Arm], rows: Sequence[Verdict], step: int) -> Markup:
    """Each measure's difference from the first arm with its interval, drawn: what the page leads
    with. Nothing where no arm has an interval."""
    plots = [
        {
            "label": f"{arm.name} against {arms[0].name}",
            "about": f"at step {step}, differences with 95% intervals over "
            f"{min(len(arm.independent), len(arms[0].independent))} seeds; the line is zero",
            "place": i,
            "rows": [_mark(verdict, r, i) for r, verdict in enumerate(rows)],
        }
        for i, arm in enumerate(arms[1:], start=1)
        if has_intervals(rows, i)
    ]
    return piece("forest.html", arms=plots) if plots else Markup()


def _mark(verdict: Verdict, r: int, arm: int) -> dict[str, Any]:
    word = verdict.words[arm].partition(" (")[0]
    mean, bounds = _numbers(verdict, arm) or (word, "")
    kind = word.partition(" ")[0]
    return {"title": verdict.taken.title, "place": r, "kind": kind, "mean": mean, "bounds": bounds}


def verdict_tables(arms: Sequence[Arm], verdicts: Sequence[Verdict]) -> Markup:
    """A table per arm against the first one; on a narrow screen each row becomes a block."""
    tables = []
    for i, arm in enumerate(arms[1:], start=1) if verdicts else ():
        drawn = has_intervals(verdicts, i)
        heads = ["measure", arms[0].name, arm.name, "difference"]
        heads += ["its interval, from zero"] if drawn else []
        # With one seed there is nothing to say in any row, and the sentence above it says it.
        said = not all(verdict.words[i].startswith("no verdict") for verdict in verdicts)
        heads += ["verdict"] if said else []
        rows = [_row(arms, verdict, i) for verdict in verdicts]
        label = f"{arm.name} against {arms[0].name}"
        tables.append(
            {"label": label, "heads": heads, "rows": rows, "drawn": drawn, "said": said, "place": i}
        )
    return piece("verdicts.html", arms=tables)


def has_intervals(verdicts: Sequence[Verdict], arm: int | None = None) -> bool:
    """Whether any difference of the arm (of any arm) has an interval; with one seed none has."""
    return any(
        known is not None
        for verdict in verdicts
        for i, known in enumerate(verdict.to_json()["intervals"])
        if arm in (None, i)
    )


def _row(arms: Sequence[Arm], verdict: Verdict, i: int) -> dict[str, Any]:
    form, change = verdict.taken.measure.format, verdict.taken.take in ("change", "gain")
    unit = " points" if change else "%"
    return {
        "title": verdict.taken.title,
        "words": verdict.words[i],
        "kind": verdict.words[i].partition(" ")[0],
        "cells": [
            (arms[0].name, _estimate(verdict.values[0], form, change, unit)),
            (arms[i].name, _estimate(verdict.values[i], form, change, unit)),
            ("difference", _estimate(verdict.differences[i], form, True, " points")),
        ],
    }


def _estimate(estimate: Estimate | None, form: str, signed: bool, unit: str = "%") -> str:
    """A mean above its interval; `unit` follows a percentage."""
    if estimate is None or math.isnan(estimate.mean):
        return "-"
    unit = unit if form == "percent" else ""
    scale = 100.0 if form == "percent" else 1.0
    mean, low, high = (
        number(scale * value, signed) for value in (estimate.mean, estimate.low, estimate.high)
    )
    if math.isnan(estimate.low):
        return f"{mean}{unit}"
    return small(f"{mean}{unit}", f"{low} to {high}")


def number(value: float, signed: bool) -> str:
    """The value to about three digits; NaN as `nan`."""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    shown = round(value, decimals) or 0.0  # not -0.0
    return f"{shown:{'+' if signed else ''},.{decimals}f}"
