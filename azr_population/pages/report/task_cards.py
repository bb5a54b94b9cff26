"""Tasks as cards: the program, its calls, every attempt with its verdict."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from azr_population.domains.domain import Domain
from azr_population.pages.report.examples import Examples
from azr_population.pages.web.templates import empty, piece
from azr_population.runs.formatting import show
from azr_population.runs.records import Record, number


def side_by_side(examples: Examples, domain: Domain) -> Markup:
    """An early task beside a late one, for each task type."""
    if not examples.pairs:
        return empty("There is no early and late task of one type to set side by side.")
    pair = Markup('<div class="pair">{}{}</div>')
    return Markup("").join(
        pair.format(card(domain, early, "early"), card(domain, late, "late"))
        for early, late in examples.pairs
    )


def hardest(tasks: Sequence[Record], otherwise: str, domain: Domain) -> Markup:
    """A card for each task, or the words `otherwise` without any."""
    cards = Markup("").join(card(domain, task) for task in tasks)
    return Markup('<div class="tasks">{}</div>').format(cards) if tasks else empty(otherwise)


def card(domain: Domain, task: Record, when: str = "", open: bool = False) -> Markup:
    """One task; with `open` its attempts are unfolded."""
    type, types = str(task.get("type", "?")), list(domain.types)
    told = ((measure, number(task.get(measure.name))) for measure in domain.measures)
    teacher, student = task.get("teacher", "?"), task.get("student", "?")
    attempts = _attempts(task)
    counts = Counter((right, verdict) for right, _, verdict in attempts)
    chips = sorted(counts.items(), key=lambda item: (-item[0][0], -item[1]))
    return piece(
        "card.html",
        when=when,
        open=open,
        type=type,
        colour=f"type-{types.index(type) % 3}" if type in types else "",
        asks=domain.types.get(type, ""),
        step=task.get("step", "?"),
        who=teacher if teacher == student else f"{teacher} for {student}",
        facts=", ".join(measure.told(value) for measure, value in told if value is not None),
        parts=domain.parts(task),
        rate=show(task.get("solve_rate"), "{:.0%}", "not attempted"),
        attempts=attempts,
        chips=[(right, verdict, count) for (right, verdict), count in chips],
    )


def _attempts(task: Record) -> list[tuple[bool, Any, str]]:
    """(solved?, the answer, the verdict) of each."""
    reasons, solved = _listed(task.get("reasons")), _listed(task.get("solved"))
    shown = []
    for i, answer in enumerate(_listed(task.get("answers"))):
        right = i < len(solved) and solved[i] is True
        reason = str(reasons[i]) if i < len(reasons) else ""
        shown.append((right, answer, "solved" if right else reason or "failed"))
    return shown


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
