"""What happened, in one line each; from the records that also go into the run directory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

Record = Mapping[str, Any]

ROLE_COLUMNS = (
    ("valid", "validity", "{:.0%}"),
    ("unique", "unique", "{:.0%}"),
    ("solved", "solve_rate", "{:.0%}"),
    ("reward", "reward", "{:+.2f}"),
    ("nodes", "ast_nodes", "{:.1f}"),
    ("lines", "lines", "{:.1f}"),
)
"""(heading, key in a role's metrics, format) in the order shown."""


def number(value: Any) -> float | None:
    """`value` as a finite float, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is known; None of nothing."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def conservative(member: Record) -> float | None:
    """mu - 3 sigma of a member's metrics; None for a member without a rating."""
    mu, sigma = number(member.get("mu")), number(member.get("sigma"))
    return None if mu is None or sigma is None else mu - 3.0 * sigma


def rating(member: Record) -> str:
    """`25.1 ± 0.4`, mu and sigma of a member's metrics; `-` for a member without a rating."""
    mu, sigma = number(member.get("mu")), number(member.get("sigma"))
    return "-" if mu is None or sigma is None else f"{mu:.1f} ± {sigma:.1f}"


def show(value: Any, form: str, missing: str = "-") -> str:
    """`value` in a format such as `{:.0%}`; `missing` where there is no finite number."""
    known = number(value)
    return missing if known is None else form.format(known)


def figure(value: float, kind: str) -> str:
    """A `percent` or another `number` as the pages' scripts write it (`format` in drawing.js), so
    that a number is the same in a sentence and in a drawing: halves are rounded up."""
    value, unit = (100.0 * value, "%") if kind == "percent" else (value, "")
    size = abs(value)
    if unit:
        places = 1 if size < 10 else 0
    else:
        places = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return f"{rounded:,f}" if size >= 10000 and not unit else f"{rounded:f}{unit}"


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours where there are some: `4:05`, `1:02:09`."""
    whole = max(0, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def match_line(match: Record) -> str:
    """`teacher_1 vs student_3: 37 valid of 48, 41% solved; mu 25.0->24.6, 25.0->25.4`.

    The ratings are the teacher's, then the student's; with 80 columns the line must not wrap.
    """
    text = (
        f"{match['teacher']} vs {match['student']}: {match.get('valid', '?')} valid of "
        f"{match.get('proposed', '?')}, {show(match.get('solve_rate'), '{:.0%}', 'none')} solved"
    )
    moves = [
        f"{before:.1f}->{after:.1f}"
        for side in ("teacher", "student")
        for before, after in [match.get(f"{side}_mu") or (None, None)]
        if before is not None
    ]
    return f"{text}; mu {', '.join(moves)}" if moves else text


def replacement_line(child: Record) -> str:
    """`student_2 replaced by svd_subspace(student_0, student_3), k=4; fitness 9.1, ...`."""
    options = "".join(f", {name}={_short(value)}" for name, value in child["options"].items())
    fitness = child.get("fitness") or {}
    parents = ", ".join(show(value, "{:.1f}") for value in fitness.get("parents", ()))
    compared = f"; fitness {show(fitness.get('victim'), '{:.1f}')}, its parents' {parents}"
    return (
        f"{child['child']} replaced by {child['operator']}({', '.join(child['parents'])}){options}"
        f"{compared if parents else ''}; generation {child['generation']}"
    )


def role_line(role: str, metrics: Record) -> str:
    """`teacher valid 79%, unique 97%, reward +0.31, nodes 26.1, lines 4.1`: what is known."""
    parts = [
        f"{heading} {show(metrics[key], form)}"
        for heading, key, form in ROLE_COLUMNS
        if metrics.get(key) is not None
    ]
    return f"{role} {', '.join(parts)}" if parts else role


def exam_line(exam: Record) -> str:
    """`exam 31%, best 36%`: the mean and the best member on the fixed held-out tasks."""
    return f"exam {show(exam.get('mean'), '{:.0%}')}, best {show(exam.get('best'), '{:.0%}')}"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def end_lines(result: Record, done: int, steps: int) -> list[str]:
    """What a view says at the end: how, and where things lie; see `console.View.on_end`."""
    lines = [f"{result.get('status', 'finished')} after step {done} of {steps}"]
    for label, key in (
        ("run directory", "dir"),
        ("members (PEFT folders)", "members"),
        ("report", "report"),
        ("go on with", "resume"),
    ):
        if result.get(key):
            lines.append(f"{label}: {result[key]}")
    return lines
