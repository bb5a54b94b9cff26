"""The comparison as one HTML file: what differs first, then verdicts, curves and budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from azr_population.comparison.azr_log import OTHERWISE
from azr_population.comparison.curves import DASHES, curves
from azr_population.comparison.differences import Differences, differences
from azr_population.comparison.fairness import fairness
from azr_population.comparison.inputs import Arm, are_mixed, arms_of
from azr_population.comparison.verdict_table import Verdict, horizon, verdicts
from azr_population.diagnostics import Estimate
from azr_population.errors import UserError
from azr_population.files import write_atomically
from azr_population.web.document import document
from azr_population.web.sections import empty, row, table, text

_SCRIPTS = ("drawing.js", "layout.js", "saving.js", "lines.js", "intervals.js", "compare.js")
_NO_DIFFERENCE = (
    *("the same", "no difference shown", "no verdict", "not the same measure"),
    *("no valid task", "not recorded"),
)


def write_comparison(arguments: Sequence[str], out: Path) -> Path:
    """Compares the runs that the arguments name (see `arms_of`) and writes the page to `out`.

    Raises:
        UserError: the arguments do not name two arms, or `out` cannot be written.
    """
    arms = arms_of(arguments)
    step = horizon(arms)
    rows = verdicts(arms, step)
    data = {
        "steps": max((run.last for arm in arms for run in arm.runs), default=0),
        "charts": curves(arms),
        "verdicts": [[_interval(estimate) for estimate in verdict.differences] for verdict in rows],
    }
    page = document(
        "compare.html",
        _SCRIPTS,
        data,
        title=" against ".join(arm.name for arm in arms),
        raw={
            "written": text(datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
            "arms": _arms(arms),
            "differences": _differences(arms, differences(arms)),
            "words": _words(arms, rows, step),
            "verdicts": _otherwise(arms, "solve_rate", "validity") + _verdict_tables(arms, rows),
            "fairness": fairness(arms, step) + _otherwise(arms, "seconds"),
        },
    )
    try:
        write_atomically(out, page)
    except OSError as error:
        raise UserError(f"--out {out} cannot be written: {error.strerror}") from error
    return out


def _arms(arms: Sequence[Arm]) -> str:
    """The arms, with the line styles that they have in the figures."""
    rows = []
    for i, arm in enumerate(arms):
        kind = "run" if all(run.directory for run in arm.runs) else "stock AZR log"
        steps = sorted({run.last for run in arm.runs})
        reach = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
        where = ", ".join(run.name for run in arm.runs)
        mark = (
            '<svg class="dash" viewBox="0 0 26 8" aria-hidden="true"><line x1="0" x2="26" y1="4" '
            f'y2="4" class="line-{i % 8}" stroke-dasharray="{DASHES[i % len(DASHES)]}"/></svg>'
        )
        cells = [text(len(arm.independent)), text(kind), text(reach), text(where)]
        rows.append(row(f"{mark}{text(arm.name)}", cells))
    return table(["arm", "seeds", "what it is", "steps recorded", "read from"], rows)


def _differences(arms: Sequence[Arm], differing: Differences) -> str:
    warned = "".join(f"<li>{text(line)}</li>" for line in differing.warnings)
    parts = [f'<ul class="warnings">{warned}</ul>'] if warned else []
    if differing.same:
        parts.append(
            f'<p class="fine">The same in all runs: {text(", ".join(differing.same))}.</p>'
        )
    if differing.rows:
        rows = [
            row(text(line.key), [text(line.group), *(text(value) for value in line.values)])
            for line in differing.rows
        ]
        heads = ["setting", "belongs to", *(arm.name for arm in arms)]
        open = " open" if len(rows) <= 12 else ""
        parts.append(
            f"<details{open}><summary>Settings and versions that differ: {len(rows)}</summary>"
            f"{table(heads, rows)}</details>"
        )
    elif not warned:
        parts.append("<p>No setting differs but the seed.</p>")
    return "".join(parts)


def _words(arms: Sequence[Arm], rows: Sequence[Verdict], step: int) -> str:
    """The verdicts as sentences, one per arm."""
    if not rows:
        return empty("Nothing to compare is recorded yet.")
    sentences = []
    for i, arm in enumerate(arms[1:], start=1):
        kinds: dict[str, list[str]] = {}
        for verdict in rows:
            kind = verdict.words[i].partition(" (")[0].partition(":")[0]
            kinds.setdefault(kind, []).append(verdict.measure.title)
        told = [
            f"<b>{text(kind.capitalize())}</b>: {text('; '.join(map(_lowered, kinds[kind])))}"
            for kind in ("higher", "lower")
            if kind in kinds
        ]
        told += [
            f"{text(kind.capitalize())} in {len(kinds[kind])} of {len(rows)} measures"
            for kind in _NO_DIFFERENCE
            if kind in kinds
        ]
        sentences.append(
            f"<p><b>{text(arm.name)}</b> against {text(arms[0].name)} at step {step}. "
            f"{'. '.join(told)}.</p>"
        )
    return "".join(sentences)


def _otherwise(arms: Sequence[Arm], *diagnostics: str) -> str:
    """What a stock log measures differently under these names, if one is compared with our runs."""
    if not are_mixed(arms):
        return ""
    told = "; ".join(OTHERWISE[name] for name in diagnostics)
    return f'<p class="fine">A stock log measures differently: {text(told)}.</p>'


def _lowered(title: str) -> str:
    """A title inside a sentence."""
    return title[:1].lower() + title[1:]


def _verdict_tables(arms: Sequence[Arm], verdicts: Sequence[Verdict]) -> str:
    """A table per arm against the first one; on a narrow screen each row becomes a block."""
    first = text(arms[0].name)
    tables = []
    for i, arm in enumerate(arms[1:], start=1) if verdicts else ():
        name = text(arm.name)
        heads = ["measure", arms[0].name, arm.name, "difference", "", "verdict"]
        rows = []
        for r, verdict in enumerate(verdicts):
            form, change = verdict.measure.format, verdict.measure.how == "change"
            kind = text(verdict.words[i].partition(" ")[0])
            unit = " points" if change else "%"
            cells = (
                (first, _estimate(verdict.values[0], form, change, unit)),
                (name, _estimate(verdict.values[i], form, change, unit)),
                ("difference", _estimate(verdict.differences[i], form, True, " points")),
                ("", f'<span class="interval" data-row="{r}" data-arm="{i}"></span>'),
                ("verdict", f'<b class="verdict {kind}">{text(verdict.words[i])}</b>'),
            )
            rows.append(
                f'<tr><th scope="row">{text(verdict.measure.title)}</th>'
                + "".join(f'<td class="number" data-label="{k}">{cell}</td>' for k, cell in cells)
                + "</tr>"
            )
        label = f"{arm.name} against {arms[0].name}"
        tables.append(
            f'<h3>{text(label)}</h3><div class="stack">{table(heads, rows, "number", label)}</div>'
        )
    return "".join(tables)


def _estimate(estimate: Estimate | None, form: str, signed: bool, unit: str = "%") -> str:
    """A mean above its interval; `unit` follows a percentage."""
    if estimate is None or math.isnan(estimate.mean):
        return "-"
    unit = unit if form == "percent" else ""
    scale = 100.0 if form == "percent" else 1.0
    mean, low, high = (
        _number(scale * value, signed) for value in (estimate.mean, estimate.low, estimate.high)
    )
    if math.isnan(estimate.low):
        return f"{mean}{unit}"
    return f"{mean}{unit}<br><small>{low} to {high}</small>"


def _number(value: float, signed: bool) -> str:
    decimals = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    shown = round(value, decimals) or 0.0  # not -0.0
    return f"{shown:{'+' if signed else ''},.{decimals}f}"


def _interval(estimate: Estimate | None) -> list[float | None] | None:
    if estimate is None or math.isnan(estimate.mean):
        return None
    return [
        None if math.isnan(value) else value
        for value in (estimate.mean, estimate.low, estimate.high)
    ]
