"""Tasks that a rule makes up, for exams and warm-ups: which of them are kept for exams."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING

from azr_population.domains.task import Task

if TYPE_CHECKING:
    from azr_population.domains.domain import Domain

HELD_OUT_SHARE = 0.02


def is_held_out(program: str) -> bool:
    """Whether it is kept for exams and never shown in a warm-up. A stable 2% of all texts."""
    digest = hashlib.sha256(program.encode()).digest()
    return int.from_bytes(digest[:4], "big") < HELD_OUT_SHARE * 2**32


def draw(make: Callable[[Random], Task | None], rng: Random, held_out: bool) -> Task:
    """The first task of `make` that is there and is held out, or is not."""
    while True:
        task = make(rng)
        if task is not None and is_held_out(task.program) == held_out:
            return task


def exam(domain: Domain, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
    """Different held-out tasks of each type, the same for the same numbers."""
    tasks: list[Task] = []
    for type in types:
        rng = Random(f"exam {seed} {type}")
        programs: set[str] = set()
        while len(programs) < per_type:
            task = domain.draw(type, rng, held_out=True)
            if task.program not in programs:
                programs.add(task.program)
                tasks.append(task)
    return tasks
