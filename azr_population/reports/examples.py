"""Which of a run's tasks the report shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from azr_population.reports.lines import number

Record = Mapping[str, Any]


def examples(tasks: Iterable[Record]) -> list[tuple[str, Record]]:
    """A few telling tasks of each type with the reason for showing each, in one pass.

    Per type: the first and the latest, the largest that was solved by all and by none of the
    attempts, and the largest that was solved by some. A task is shown once.
    """
    chosen: dict[tuple[str, str], Record] = {}
    for task in tasks:
        type, rate = str(task.get("type", "?")), number(task.get("solve_rate"))
        chosen.setdefault((type, "first"), task)
        chosen[type, "latest"] = task
        if rate is None:
            continue
        reason = "solved" if rate == 1 else "unsolved" if rate == 0 else "contested"
        best = chosen.get((type, reason))
        if best is None or _size(task) >= _size(best):
            chosen[type, reason] = task
    words = {
        "first": "the first",
        "latest": "the latest",
        "solved": "the largest that every attempt solved",
        "unsolved": "the largest that no attempt solved",
        "contested": "the largest that some attempts solved",
    }
    shown: dict[int, tuple[str, Record]] = {}
    for type in dict.fromkeys(type for type, _ in chosen):
        for reason, text in words.items():
            if (type, reason) in chosen:
                task = chosen[type, reason]
                shown.setdefault(id(task), (text, task))
    return list(shown.values())


def _size(task: Record) -> float:
    return number(task.get("ast_nodes")) or 0.0
