"""The verdicts as HTML: a sentence per arm, and a table per arm."""

from __future__ import annotations

import math
from collections.abc import Sequence

from azr_population.pages.comparison.inputs import Arm
from azr_population.pages.comparison.verdict_table import Verdict
from azr_population.pages.web.sections import empty, table, text
from azr_population.runs.diagnostics import Estimate

_NO_DIFFERENCE = (
    *("the same", "no difference shown", "no verdict", "not the same measure"),
    *("no valid task", "not recorded"),
)


def verdict_words(arms: Sequence[Arm], rows: Sequence[Verdict], step: int) -> str:
    """Per arm: what is higher and lower than in the first one, with intervals, then the rest."""
    if not rows:
        return empty("Nothing to compare is recorded yet.")
    return "".join(
        f"<p><b>{text(arm.name)}</b> against {text(arms[0].name)} at step {step}{_told(rows, i)}"
        for i, arm in enumerate(arms[1:], start=1)
    )


def _told(rows: Sequence[Verdict], arm: int) -> str:
    kinds: dict[str, list[Verdict]] = {}
    for verdict in rows:
        kinds.setdefault(verdict.words[arm].partition(" (")[0].partition(":")[0], []).append(
            verdict
        )
    if set(kinds) == {"no verdict"}:
        return ": no verdict, because an interval needs at least two seeds of each arm.</p>"
    told = [
        f"<li><b>{kind.capitalize()}</b>"
        f"{text('; '.join(_with_interval(verdict, arm) for verdict in kinds[kind]))}</li>"
        for kind in ("higher", "lower")
        if kind in kinds
    ]
    rest = "; ".join(
        f"{kind} in {len(kinds[kind])} of {len(rows)} measures"
        for kind in _NO_DIFFERENCE
        if kind in kinds
    )
    told += [f"<li><b>{'Else' if told else 'All'}</b>{text(rest)}</li>"] if rest else []
    return f":</p><ul>{''.join(told)}</ul>"


def _with_interval(verdict: Verdict, arm: int) -> str:
    """`lines of code, change (+1.21 [+0.76, +1.66])`."""
    title, estimate = verdict.taken.title, verdict.differences[arm]
    if estimate is None:
        return title
    scale, unit = (100.0, " points") if verdict.taken.measure.format == "percent" else (1.0, "")
    mean, low, high = (
        number(scale * value, signed=True) for value in (estimate.mean, estimate.low, estimate.high)
    )
    return f"{title[:1].lower()}{title[1:]} ({mean}{unit} [{low}, {high}])"


def verdict_tables(arms: Sequence[Arm], verdicts: Sequence[Verdict]) -> str:
    """A table per arm against the first one; on a narrow screen each row becomes a block."""
    tables = []
    for i, arm in enumerate(arms[1:], start=1) if verdicts else ():
        drawn = has_intervals(verdicts, i)
        heads = ["measure", arms[0].name, arm.name, "difference"]
        heads += ["its interval, from zero"] if drawn else []
        # With one seed there is nothing to say in any row, and the sentence above says it.
        said = not all(verdict.words[i].startswith("no verdict") for verdict in verdicts)
        heads += ["verdict"] if said else []
        rows = [_row(arms, verdict, r, i, drawn, said) for r, verdict in enumerate(verdicts)]
        label = f"{arm.name} against {arms[0].name}"
        tables.append(
            f'<h3>{text(label)}</h3><div class="stack">{table(heads, rows, "number", label)}</div>'
        )
    return "".join(tables)


def has_intervals(verdicts: Sequence[Verdict], arm: int | None = None) -> bool:
    """Whether any difference of the arm (of any arm) has an interval; with one seed none has."""
    return any(
        known is not None
        for verdict in verdicts
        for i, known in enumerate(verdict.to_json()["intervals"])
        if arm in (None, i)
    )


def _row(arms: Sequence[Arm], verdict: Verdict, r: int, i: int, drawn: bool, said: bool) -> str:
    form, change = verdict.taken.measure.format, verdict.taken.take == "change"
    kind = text(verdict.words[i].partition(" ")[0])
    unit = " points" if change else "%"
    cells = [
        ("", text(arms[0].name), _estimate(verdict.values[0], form, change, unit)),
        ("", text(arms[i].name), _estimate(verdict.values[i], form, change, unit)),
        ("", "difference", _estimate(verdict.differences[i], form, True, " points")),
    ]
    if drawn:
        interval = f'<span class="interval" data-row="{r}" data-arm="{i}"></span>'
        cells.append((" drawn", "", interval))
    if said:
        words = f'<b class="verdict {kind}">{text(verdict.words[i])}</b>'
        cells.append((" said", "", words))
    return (
        f'<tr><th scope="row">{text(verdict.taken.title)}</th>'
        + "".join(
            f'<td class="number{style}" data-label="{label}">{cell}</td>'
            for style, label, cell in cells
        )
        + "</tr>"
    )


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
    return f"{mean}{unit}<br><small>{low} to {high}</small>"


def number(value: float, signed: bool) -> str:
    """The value to about three digits; NaN as `nan`."""
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    shown = round(value, decimals) or 0.0  # not -0.0
    return f"{shown:{'+' if signed else ''},.{decimals}f}"
