"""What bases are trained on: executed programs of the grammar, as tasks to propose and to solve.

Prompts and completions are those of a run. Programs that are held out for the eval are left out.
"""

import ast
from collections.abc import Iterator, Mapping
from random import Random

from azr_population.domains.code.formats import CODE_F_INPUTS
from azr_population.domains.code.generator.programs import Example, core_program, examine
from azr_population.domains.code.generator.tail import SHARES, TailGrammar, draw_construct
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.format import Format

O, I, F = TaskType.CODE_O, TaskType.CODE_I, TaskType.CODE_F  # noqa: E741

_DULL = frozenset({"0", "1", "2", "-1", "[]", "''"})
"""Outputs that are easy to guess; most pairs with them are left out of proposals."""

Group = tuple[str, list[Task]]
"""`propose` or `solve`, and tasks of one type about one program."""
Mix = Mapping[tuple[str, TaskType], tuple[int, tuple[int, ...]]]
"""By kind of group: the weight of its number, and the weights of programs with 0, 1, 2 and 3
statements before the return."""

NANO_MIX: Mix = {
    ("propose", O): (12, (34, 36, 22, 8)),
    ("propose", I): (9, (34, 36, 22, 8)),
    ("propose", F): (12, (78, 18, 4, 0)),
    ("solve", O): (36, (30, 34, 24, 12)),
    ("solve", I): (14, (32, 36, 22, 10)),
    ("solve", F): (17, (74, 20, 6, 0)),
}
WARM_UP_MIX: Mix = {
    ("propose", O): (54, (5, 55, 28, 12)),
    ("propose", I): (54, (5, 55, 28, 12)),
    ("propose", F): (6, (50, 40, 10, 0)),
    ("solve", O): (36, (15, 48, 26, 11)),
    ("solve", I): (16, (15, 48, 26, 11)),
    ("solve", F): (12, (50, 40, 10, 0)),
}
"""There are so few programs without any statement that proposing them would mean repeating them."""


def demonstrations(groups: list[Group], format: Format) -> Iterator[tuple[str, str]]:
    """(prompt, completion) of each task of the groups, as a run has them."""
    for phase, tasks in groups:
        for task in tasks:
            if phase == "propose":
                yield format.propose_prompt(task.type), format.write_proposal(task)
            else:
                yield format.solve_prompt(task), format.write_answer(task)


def draw_groups(
    rng: Random, size: int, mix: Mix = NANO_MIX, strict: bool = False, tail: bool = False
) -> list[Group]:
    """`size` groups, each about one program; the same for the same `rng`.

    `strict` proposals never fail and never return an argument, on none of the inputs tried, and
    code_f's inputs are spread. With `tail` some programs have a construct of the long tail,
    `tail.SHARES` of them.
    """
    grammar = TailGrammar(rng)
    groups: list[Group] = []
    while len(groups) < size:
        phase, type = rng.choices(list(mix), [weight for weight, _ in mix.values()])[0]
        tasks: list[Task] = []
        if tail and rng.random() < SHARES[phase]:
            construct = draw_construct(phase, rng)
            while not tasks:  # a construct whose programs often fail is as frequent
                written = grammar.tail_program([construct], simple=type == F)
                tasks = _tasks(examine(grammar, written), phase, type, strict, rng)
        else:
            level = rng.choices(range(4), mix[phase, type][1])[0]
            written = core_program(grammar, level, simple=type == F)
            tasks = _tasks(examine(grammar, written), phase, type, strict, rng)
        if tasks:
            groups.append((phase, tasks))
    return groups


def _tasks(
    example: Example | None, phase: str, type: TaskType, strict: bool, rng: Random
) -> list[Task]:
    """Two inputs to propose, five questions to solve, or code_f's six pairs; none where the example
    makes no such group."""
    if example is None:
        return []
    pairs = example.pairs
    if type == F and strict:
        pairs = _spread(pairs[:CODE_F_INPUTS])
    if phase == "propose":
        # An argument as value is what the validity rules reject.
        new = [pair for pair in pairs if pair[1] not in pair[0]]
        if strict and (example.failed or len(new) < len(pairs)):
            return []
        if type != F:
            pairs = [pair for pair in new if pair[1] not in _DULL or rng.random() < 0.2][:2]
        if len(new) < len(pairs) / 2 or len(pairs) < 2:
            return []
    if type == F:
        inputs, outputs = zip(*pairs[:CODE_F_INPUTS], strict=True)
        return [Task(type, example.program, inputs, outputs)]
    return [Task(type, example.program, (asked,), (value,)) for asked, value in pairs[:5]]


def _spread(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """In rising order of the inputs, every other one first: the shown half spans the same range as
    the hidden half."""
    rising = sorted(pairs, key=lambda pair: ast.literal_eval(f"({pair[0]},)"))
    return rising[0::2] + rising[1::2]
