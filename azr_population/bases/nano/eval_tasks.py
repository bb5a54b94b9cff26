"""A fixed eval on programs of the grammar that the base has never been trained on.

It has strata: the core of the grammar, which pre-training has saturated, the long tail by its
constructs' frequency, and compositions of two of those, which pre-training never had. What a run
can teach lies in the tail; the core says what it cost.
"""

from collections.abc import Collection
from random import Random

from azr_population.bases.nano.corpus import Example, draw_example, draw_tail_example
from azr_population.bases.nano.tail import BANDS, CONSTRUCTS, TailGrammar, draw_composition
from azr_population.domains.code.formats import CODE_F_INPUTS
from azr_population.domains.code.task_types import ParsedProposal, Task, TaskType
from azr_population.domains.code.validity import REFUSALS
from azr_population.domains.code.validity import accept as judge_proposal

LEVELS = (0, 1, 2, 3, 4)
"""Statements before the return of a core program, equally many tasks of each."""

CORE, COMPOSITIONS = "core", "compositions"
SHARES = {CORE: 2, **dict.fromkeys(BANDS, 1), COMPOSITIONS: 1}
"""Weights of the strata: a third core, half tail, a sixth compositions."""

_MAX_OUTPUT_CHARS = 48


def draw_eval_tasks(
    n_per_type: int, seed: int, types: Collection[str] = tuple(TaskType)
) -> list[Task]:
    """`n_per_type` tasks of each of the `types`, in order of type and of `strata`.

    Every program is in the held-out bucket (`corpus.is_held_out`); all of a run's default rules for
    valid tasks hold. No program of the core comes twice, and no task of the tail. The same numbers
    give the same eval, and the tasks of a type do not depend on which others there are. Programs
    are of our own grammar and run in this process.
    """
    tasks: list[Task] = []
    for type in filter(types.__contains__, TaskType):
        rng = Random(f"nano exam {seed} {type}")
        grammar = TailGrammar(rng)
        of_type: list[Task] = []
        of_strata = strata(n_per_type)
        for number, stratum in enumerate(of_strata):
            place, size = number - of_strata.index(stratum), of_strata.count(stratum)
            task = None
            while task is None or task in of_type or (stratum == CORE and _repeated(task, of_type)):
                task = draw_task(grammar, type, stratum, place, size, held_out=True)
            of_type.append(task)
        tasks += of_type
    return tasks


def _repeated(task: Task, others: list[Task]) -> bool:
    return any(task.program == other.program for other in others)


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
    """A task of this stratum; over the places below `size` levels and constructs take turns."""
    while True:
        example = _example(grammar, type, stratum, place, size, held_out)
        if example is None:
            continue
        pairs = example.pairs[: CODE_F_INPUTS if type == TaskType.CODE_F else 1]
        inputs, outputs = zip(*pairs, strict=True)
        proposal = ParsedProposal(type, example.program, tuple(inputs))
        task = judge_proposal(proposal, tuple(outputs), tuple(REFUSALS), _MAX_OUTPUT_CHARS)
        if isinstance(task, Task):
            return task


def _example(
    grammar: TailGrammar, type: TaskType, stratum: str, place: int, size: int, held_out: bool
) -> Example | None:
    if stratum == CORE:
        level = LEVELS[place * len(LEVELS) // size]
        return draw_example(grammar, level, type == TaskType.CODE_F, held_out)
    if stratum == COMPOSITIONS:
        return draw_tail_example(grammar, draw_composition(grammar.rng), held_out=held_out)
    of_band = CONSTRUCTS[BANDS[stratum]]
    return draw_tail_example(grammar, [of_band[place % len(of_band)]], held_out=held_out)
