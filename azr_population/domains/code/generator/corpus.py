"""What bases are trained on: programs of the grammar, executed, as tasks to propose and to solve.

The programs end by construction and run in this process; what models write is run by
`azr_population.referee`. Held-out programs are left out for the eval.
"""

import ast
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from azr_population.domains.code.formats import CODE_F_INPUTS
from azr_population.domains.code.generator.grammar import Grammar, Written
from azr_population.domains.code.generator.tail import SHARES, TailGrammar, draw_construct
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.domain import is_held_out

O, I, F = TaskType.CODE_O, TaskType.CODE_I, TaskType.CODE_F  # noqa: E741

MAX_VALUE_CHARS = 48
_CALLS = 12
_DULL = frozenset({"0", "1", "2", "-1", "[]", "''"})
"""Outputs that are easy to guess; most pairs with them are left out of proposals."""

Group = tuple[str, list[Task]]
"""`propose` or `solve`, and tasks of one type: a document of training."""
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


class Example(NamedTuple):
    """A program of the grammar that runs, with pairs (argument list, `repr` of the value)."""

    program: str
    pairs: list[tuple[str, str]]
    failed: int
    """Arguments on which it failed."""


def run_function(source: str, arguments: Sequence[str]) -> list[str | None]:
    """`repr(f(...))` for each argument list; None where it raises, differs when run again,
    or is longer than `MAX_VALUE_CHARS`."""
    code = compile(source, "<program>", "exec")
    values: list[str | None] = []
    for text in arguments:
        namespace: dict[str, Any] = {}
        try:
            exec(code, namespace)
            value, again = (repr(eval(f"f({text})", namespace)) for _ in range(2))
        except Exception:  # of any kind: it is the program's
            values.append(None)
        else:
            values.append(value if value == again and len(value) <= MAX_VALUE_CHARS else None)
    return values


def core_program(grammar: Grammar, level: int, simple: bool) -> Written:
    """A program without constructs of the tail; a `simple` one nests less and has fewer
    parameters."""
    rng = grammar.rng
    depth = 1 if simple and rng.random() < 0.6 else 2
    return grammar.program(level, depth, parameters=1 if simple and rng.random() < 0.7 else None)


def examine(grammar: Grammar, written: Written, held_out: bool = False) -> Example | None:
    """The program with its pairs; None if it is not (or is) held out, if it often fails, or if its
    value hardly depends on the input."""
    if is_held_out(written.source) is not held_out:
        return None
    arguments = list(dict.fromkeys(grammar.arguments(written.parameters) for _ in range(_CALLS)))
    values = run_function(written.source, arguments)
    pairs = [(a, v) for a, v in zip(arguments, values, strict=True) if v is not None]
    outputs = [value for _, value in pairs]
    if (
        len(pairs) < 8
        or len(set(outputs)) < 5
        or max(map(outputs.count, outputs)) > 0.4 * len(outputs)
        or any(len(value) > 4 and value.lstrip("-").isdigit() for value in outputs)
    ):
        return None
    return Example(written.source, pairs, len(arguments) - len(pairs))


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
