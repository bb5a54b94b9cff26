"""A fixed exam on programs of the grammar that the base has never been trained on."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from azr_population.bases.nano.corpus import draw_example
from azr_population.bases.nano.grammar import Grammar
from azr_population.domains.code.nano_format import CODE_F_INPUTS
from azr_population.domains.code.task import Proposal, Task, TaskType
from azr_population.domains.code.validity import REFUSALS
from azr_population.domains.code.validity import accept as judge_proposal

LEVELS = (0, 1, 2, 3, 4)
"""Statements before the return; an exam has equally many tasks of each."""

_MAX_OUTPUT_CHARS = 48


def exam(n_per_type: int, seed: int, types: Collection[str] = tuple(TaskType)) -> list[Task]:
    """`n_per_type` tasks of each of the `types`, in order of type and rising difficulty.

    Every program is in the held-out bucket (`corpus.is_held_out`) and different from the others;
    all of a run's default rules for valid tasks hold. The same numbers give the same exam, and the
    tasks of a type do not depend on which others there are. Programs are of our own grammar and run
    in this process.
    """
    tasks: list[Task] = []
    for type in filter(types.__contains__, TaskType):
        rng = Random(f"nano exam {seed} {type}")
        grammar = Grammar(rng)
        seen: set[str] = set()
        for number in range(n_per_type):
            level = LEVELS[number * len(LEVELS) // n_per_type]
            tasks.append(_draw(grammar, type, level, seen))
    return tasks


def _draw(grammar: Grammar, type: TaskType, level: int, seen: set[str]) -> Task:
    while True:
        example = draw_example(grammar, level, simple=type == TaskType.CODE_F, held_out=True)
        if example is None or example.program in seen:
            continue
        pairs = example.pairs[: CODE_F_INPUTS if type == TaskType.CODE_F else 1]
        inputs, outputs = zip(*pairs, strict=True)
        proposal = Proposal(type, example.program, tuple(inputs))
        task = judge_proposal(proposal, tuple(outputs), tuple(REFUSALS), _MAX_OUTPUT_CHARS)
        if isinstance(task, Task):
            seen.add(example.program)
            return task
