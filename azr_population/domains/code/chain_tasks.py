"""Tasks about chains, as many of each number of statements: the held-out eval, and what bases are
trained on."""

from collections.abc import Sequence
from random import Random

from azr_population.domains.code import chains
from azr_population.domains.code.formats import CODE_F_INPUTS
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.domain import is_held_out

EVAL_DEPTHS = 12
"""Statements of the longest program of an eval. The nano base solves none of those greedily."""


def draw_tasks(
    rng: Random, type: str, depth: int, inputs: int = 1, held_out: bool = False
) -> list[Task]:
    """Valid tasks about one program of `depth` statements, one for each of its `inputs`; of code_f
    one task."""
    while True:
        chain = chains.draw_chain(rng, depth)
        program = chains.source(chain)
        if is_held_out(program) is not held_out:
            continue
        pairs = chains.draw_pairs(rng, chain, CODE_F_INPUTS if type == TaskType.CODE_F else inputs)
        if pairs and type == TaskType.CODE_F:
            return [Task(type, program, tuple(x for x, _ in pairs), tuple(y for _, y in pairs))]
        if pairs:
            return [Task(type, program, (x,), (y,)) for x, y in pairs]


def draw_eval_tasks(per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
    """Different held-out tasks of each type, the shallow ones first; the same for the same numbers.
    Those of a type do not depend on the other types."""
    tasks: list[Task] = []
    for type in types:
        rng = Random(f"exam {seed} {type}")
        drawn: dict[Task, None] = {}
        for number, depth in enumerate(_depths(per_type)):
            while len(drawn) <= number:
                drawn[draw_tasks(rng, type, depth, held_out=True)[0]] = None
        tasks += drawn
    return tasks


def strata(per_type: int) -> list[str]:
    """The depth of each task of a type, with the half of all depths before it."""
    halves = ("shallow", "deep")
    return [f"{halves[2 * d > EVAL_DEPTHS]}/{d:02}_statements" for d in _depths(per_type)]


def _depths(count: int) -> list[int]:
    return [1 + number * EVAL_DEPTHS // count for number in range(count)]
