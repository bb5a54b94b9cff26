"""A fixed eval on programs of the grammar that the base has never been trained on.

Its strata are the core of the grammar, which pre-training has saturated, the long tail by its
constructs' frequency, and compositions of two of those, which were not in pre-training. A run can
improve the tail; the core shows forgetting.
"""

from collections.abc import Collection
from random import Random

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.formats import CODE_F_INPUTS
from azr_population.domains.code.generator.programs import MAX_VALUE_CHARS, core_program, examine
from azr_population.domains.code.generator.tail import (
    BANDS,
    CONSTRUCTS,
    TailGrammar,
    draw_composition,
)
from azr_population.domains.code.rules import task_or_reason
from azr_population.domains.code.task_types import ParsedProposal, Task, TaskType

LEVELS = (0, 1, 2, 3, 4)
"""Statements before the return of a core program, equally many tasks of each."""

CORE, COMPOSITIONS = "core", "compositions"
SHARES = {CORE: 2, **dict.fromkeys(BANDS, 1), COMPOSITIONS: 1}
"""Weights of the strata: a third core, half tail, a sixth compositions."""

_RULES = TaskConfig(max_output_chars=MAX_VALUE_CHARS)


def draw_eval_tasks(
    n_per_type: int, seed: int, types: Collection[str] = tuple(TaskType)
) -> list[Task]:
    """`n_per_type` tasks of each of the `types`, in order of type and of `strata`.

    Every program is in the held-out bucket (`domain.is_held_out`); all of a run's default rules for
    valid tasks hold. Programs of the core and tasks of the tail are distinct. The same numbers give
    the same eval, and the tasks of a type do not depend on the other types. The programs are of our
    grammar and run in this process.
    """
    tasks: list[Task] = []
    for type in filter(types.__contains__, TaskType):
        rng = Random(f"nano exam {seed} {type}")
        grammar = TailGrammar(rng)
        drawn_tasks: list[Task] = []
        programs: set[str] = set()
        names = strata(n_per_type)
        for number, stratum in enumerate(names):
            place, size = number - names.index(stratum), names.count(stratum)
            while True:
                task = draw_task(grammar, type, stratum, place, size, held_out=True)
                if task not in drawn_tasks and not (stratum == CORE and task.program in programs):
                    break
            drawn_tasks.append(task)
            programs.add(task.program)
        tasks += drawn_tasks
    return tasks


def strata(n_per_type: int) -> list[str]:
    """The stratum of each of the tasks of a type, in order."""
    slices = [name for name, weight in SHARES.items() for _ in range(weight)]
    return [slices[number * len(slices) // n_per_type] for number in range(n_per_type)]


def draw_task(
    grammar: TailGrammar,
    type: TaskType,
    stratum: str,
    place: int,
    size: int,
    held_out: bool = False,
) -> Task:
    """A task of this stratum, the `place`-th of `size`, over which levels and constructs rotate."""
    while True:
        if stratum == CORE:
            level = LEVELS[place * len(LEVELS) // size]
            written = core_program(grammar, level, simple=type == TaskType.CODE_F)
        elif stratum == COMPOSITIONS:
            written = grammar.tail_program(draw_composition(grammar.rng))
        else:
            constructs = CONSTRUCTS[BANDS[stratum]]
            written = grammar.tail_program([constructs[place % len(constructs)]])
        example = examine(grammar, written, held_out)
        if example is None:
            continue
        pairs = example.pairs[: CODE_F_INPUTS if type == TaskType.CODE_F else 1]
        inputs, outputs = zip(*pairs, strict=True)
        proposal = ParsedProposal(type, example.program, inputs)
        task = task_or_reason(proposal, outputs, _RULES)
        if isinstance(task, Task):
            return task
