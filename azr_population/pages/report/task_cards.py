"""Tasks as cards: the program, its calls, every attempt with its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from azr_population.domains.domain import Domain, Part
from azr_population.pages.report.examples import Examples
from azr_population.pages.report.programs import marked
from azr_population.pages.web.sections import cut, empty, text
from azr_population.runs.formatting import show
from azr_population.runs.records import number

Record = Mapping[str, Any]

_STYLE = {True: "yes", False: "no"}
_MARK = {True: "✓", False: "✗"}


def side_by_side(examples: Examples, domain: Domain) -> str:
    """An early task beside a late one, for each task type."""
    if not examples.pairs:
        return empty("There is no early and late task of one type to set side by side.")
    return "".join(
        f'<div class="pair">{_card(domain, early, "early")}{_card(domain, late, "late")}</div>'
        for early, late in examples.pairs
    )


def hardest(tasks: Sequence[Record], otherwise: str, domain: Domain) -> str:
    """A card for each task, or the words `otherwise` without any."""
    cards = "".join(_card(domain, task) for task in tasks)
    return f'<div class="tasks">{cards}</div>' if tasks else empty(otherwise)


def _card(domain: Domain, task: Record, when: str = "") -> str:
    type, types = str(task.get("type", "?")), list(domain.types)
    colour = f"type-{types.index(type) % 3}" if type in types else ""
    head = f"{when}: " if when else ""
    rate = show(task.get("solve_rate"), "{:.0%}", "not attempted")
    facts = ", ".join(
        measure.told(known)
        for measure in domain.measures
        if (known := number(task.get(measure.name))) is not None
    )
    return (
        f'<article class="task"><h3><i class="dot {colour}"></i>{text(head)}{text(type)} '
        f"<small>{text(domain.types.get(type, ''))}</small></h3>"
        f'<p class="facts"><b>step {text(task.get("step", "?"))}</b> '
        f"{text(_who(task))}"
        f"<br>{text(facts)}</p>"
        f"{''.join(map(_part, domain.parts(task)))}"
        f"{_attempts(task, rate)}</article>"
    )


def _who(task: Record) -> str:
    teacher, student = task.get("teacher", "?"), task.get("student", "?")
    return str(teacher) if teacher == student else f"{teacher} for {student}"


def _part(part: Part) -> str:
    if part.kind == "message":
        return f'<p class="message">“{text(part.text)}”</p>'
    return f'<pre class="{part.kind}">{marked(cut(part.text))}</pre>'


def _attempts(task: Record, rate: str) -> str:
    reasons, solved = _listed(task.get("reasons")), _listed(task.get("solved"))
    shown: list[tuple[bool, Any, str]] = []
    for i, answer in enumerate(_listed(task.get("answers"))):
        right = i < len(solved) and solved[i] is True
        reason = str(reasons[i]) if i < len(reasons) else ""
        shown.append((right, answer, "solved" if right else reason or "failed"))
    if not shown:
        return '<p class="facts">No attempt is recorded.</p>'
    counts = Counter((right, verdict) for right, _, verdict in shown)
    chips = "".join(
        f'<span class="{_STYLE[right]}">{_MARK[right]} {count} {text(verdict)}</span>'
        for (right, verdict), count in sorted(
            counts.items(), key=lambda item: (-item[0][0], -item[1])
        )
    )
    lines = "".join(
        f'<li class="{_STYLE[right]}"><b>{_MARK[right]} {text(verdict)}</b> {_answer(answer)}</li>'
        for right, answer, verdict in shown
    )
    return (
        f'<p class="verdicts"><b>{text(rate)} solved</b>{chips}</p>'
        f"<details><summary>{len(shown)} attempts</summary><ul>{lines}</ul></details>"
    )


def _answer(answer: Any) -> str:
    return "<em>nothing that parses</em>" if answer is None else f"<code>{text(answer)}</code>"


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
