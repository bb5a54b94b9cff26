"""Which of a run's tasks its page shows."""

import heapq
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from azr_population.runs.diagnostics.takes import tenth
from azr_population.runs.records import Record, number

Hardness = Callable[[Record], tuple[float, ...]]

HARDEST = 3
"""Tasks shown under "solved by somebody" and under "solved by nobody"."""


class Examples(NamedTuple):
    """The tasks that the page shows."""

    pairs: list[tuple[Record, Record]]
    """An early and a late task of each type, each of median size for its time."""
    solved: list[Record]
    """The hardest solved ones: the lowest solve rate above 0, then the largest program."""
    unsolved: list[Record]
    """The largest programs that nobody solved in any of their tasks."""


def examples(read: Callable[[], Iterable[Record]], last: int, size: str) -> Examples:
    """Reads the tasks twice and keeps the first and the last tenth of `last` steps in memory;
    `size` is the measure that programs are large by.

    A program counts once among the hardest, by its hardest task.
    """
    hardness = partial(_hardness, size)
    ever_solved = {_program(task) for task in read() if (number(task.get("solve_rate")) or 0) > 0}
    width = tenth(last)
    early: dict[str, list[Record]] = {}
    late: dict[str, list[Record]] = {}
    solved: dict[str, Record] = {}
    unsolved: dict[str, Record] = {}
    for task in read():
        step, rate = number(task.get("step")), number(task.get("solve_rate"))
        if step is None:
            continue
        if step <= width:
            early.setdefault(_type(task), []).append(task)
        elif step > last - width:
            late.setdefault(_type(task), []).append(task)
        if rate is not None:
            program = _program(task)
            if rate > 0:
                _note(solved, program, task, hardness)
            elif program not in ever_solved:
                _note(unsolved, program, task, hardness)
    return Examples(
        [
            (_middle(early[type], size), _middle(late[type], size))
            for type in sorted(early)
            if type in late
        ],
        heapq.nlargest(HARDEST, solved.values(), key=hardness),
        heapq.nlargest(HARDEST, unsolved.values(), key=hardness),
    )


def _note(hardest: dict[str, Record], program: str, task: Record, key: Hardness) -> None:
    """Keeps the hardest task of each program, and once there are many, the hardest programs."""
    hardest[program] = max(hardest.get(program, task), task, key=key)
    if len(hardest) > 64 * HARDEST:
        kept = heapq.nlargest(HARDEST, hardest.items(), key=lambda item: key(item[1]))
        hardest.clear()
        hardest.update(kept)


def _hardness(size: str, task: Record) -> tuple[float, ...]:
    return (
        -(number(task.get("solve_rate")) or 0.0),
        number(task.get(size)) or 0.0,
        number(task.get("step")) or 0.0,
    )


def _middle(tasks: list[Record], size: str) -> Record:
    return sorted(tasks, key=lambda task: number(task.get(size)) or 0.0)[len(tasks) // 2]


def _program(task: Record) -> str:
    return str(task.get("program", ""))


def _type(task: Record) -> str:
    return str(task.get("type", "?"))
