"""Demonstrations for a warm-up: prompts of a run with completions that a run would count as right.

Programs come from the nano base's endless grammar and from seed files, and are executed first.
Demonstrations of one kind that share the beginning of their prompt form a group and become one
`Document`: the common beginning, then the rest of each demonstration in its branch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from random import Random
from typing import Any

import numpy as np

from azr_population.bases.nano.corpus import Example, draw_example
from azr_population.bases.nano.executor import in_child
from azr_population.bases.nano.grammar import Grammar
from azr_population.bases.sft_trainer import Document
from azr_population.domains.code.formats import CODE_F_INPUTS, FORMATS
from azr_population.domains.code.task_types import ParsedProposal, Task, TaskType
from azr_population.domains.code.validity import REFUSALS, accept
from azr_population.domains.format import Format
from azr_population.domains.known import find_domain

O, I, F = TaskType.CODE_O, TaskType.CODE_I, TaskType.CODE_F  # noqa: E741


@dataclass(frozen=True)
class Demonstration:
    """A prompt and the completion that answers it."""

    prompt: str
    completion: str


@dataclass(frozen=True)
class DemonstrationSet:
    """Demonstrations of one kind; `programs` are those that they propose or ask about."""

    phase: str
    demonstrations: tuple[Demonstration, ...]
    programs: tuple[str, ...]


MIX = {
    ("propose", O): 18,
    ("propose", I): 18,
    ("propose", F): 6,
    ("solve", O): 36,
    ("solve", I): 16,
    ("solve", F): 12,
}
"""Weights of the kinds of groups, by number."""

_SIZES = {("propose", O): 3, ("propose", I): 3, ("solve", O): 6, ("solve", I): 4}
"""Demonstrations in a group, where more than one: programs to propose, questions about one."""

_LEVELS = {"propose": (5, 55, 28, 12), "solve": (15, 48, 26, 11)}
"""Weights of programs with 0, 1, 2 and 3 statements before the return. There are so few without any
statement that proposing them would mean repeating them."""

_F_LEVELS = (50, 40, 10, 0)
_PROPOSING = 0.25
"""Share of the groups of another domain that propose; each proposes three tasks."""
_OF_CODE = frozenset(map(str, TaskType))
SOLVE_WEIGHT = 2.0
"""Of a token of an answer in the loss; 1 of a proposal's. Answers are short."""
_CHUNK = 250
"""Groups that a child makes at a time."""


def from_grammar(
    seed: int, format: str, start: int = 0, domain: str = "code"
) -> Iterator[tuple[int, list[DemonstrationSet]]]:
    """Chunks of groups without end, each with its number, from chunk `start` on; the same for the
    same seed. They are made ahead in a child process."""
    make = (
        partial(_chunk, seed, format) if domain == "code" else partial(_drawn, seed, format, domain)
    )
    yield from enumerate(in_child(make, count(start)), start)


def from_tasks(tasks: Sequence[Task], format: Format, rng: Random) -> Iterator[DemonstrationSet]:
    """Groups from executed tasks without end: each round all of them in another order, a task
    proposed in one and solved in the next."""
    for turn in count():
        order = list(tasks)
        rng.shuffle(order)
        for place, task in enumerate(order):
            if (place + turn) % 2:
                yield _proposing([task], format)
            else:
                yield _solving([task], format)


def _chunk(seed: int, format: str, chunk: int) -> list[DemonstrationSet]:
    rng = Random(f"demonstrations {seed} {chunk}")
    grammar, prompts = Grammar(rng), FORMATS.find(format).function()
    kinds, weights = list(MIX), list(MIX.values())
    groups = []
    for _ in range(_CHUNK):
        phase, type = rng.choices(kinds, weights)[0]
        size = _SIZES.get((phase, type), 1)
        if phase == "propose":
            tasks = [_tasks(grammar, phase, type, 1)[0] for _ in range(size)]
            groups.append(_proposing(tasks, prompts))
        else:
            groups.append(_solving(_tasks(grammar, phase, type, size), prompts))
    return groups


def _drawn(seed: int, format: str, name: str, chunk: int) -> list[DemonstrationSet]:
    """As `_chunk`, for another domain, which draws the tasks."""
    rng, domain = Random(f"demonstrations {name} {seed} {chunk}"), find_domain(name)
    prompts, groups = domain.format(format), []
    for _ in range(_CHUNK):
        # A domain that extends `code` draws only the types that it adds.
        type = rng.choice([type for type in domain.types if type not in _OF_CODE])
        if rng.random() < _PROPOSING:
            groups.append(_proposing([domain.draw(type, rng) for _ in range(3)], prompts))
        else:
            groups.append(_solving([domain.draw(type, rng)], prompts))
    return groups


def _tasks(grammar: Grammar, phase: str, type: TaskType, most: int) -> list[Task]:
    """At least one and at most `most` tasks about one new program, valid by a run's rules."""
    weights = _F_LEVELS if type is F else _LEVELS[phase]
    while True:
        level = grammar.rng.choices(range(4), weights)[0]
        example = draw_example(grammar, level, simple=type is F)
        if example is None or (phase == "propose" and example.failed):
            continue
        tasks = [
            task for pairs in _questions(type, example) if (task := _task(type, example, pairs))
        ]
        if tasks:
            return tasks[:most]


def _questions(type: TaskType, example: Example) -> Iterator[tuple[tuple[str, str], ...]]:
    if type is F:
        yield example.pairs[:CODE_F_INPUTS]
    else:
        yield from ((pair,) for pair in example.pairs)


def _task(type: TaskType, example: Example, pairs: tuple[tuple[str, str], ...]) -> Task | None:
    inputs, outputs = zip(*pairs, strict=True)
    verdict = accept(ParsedProposal(type, example.program, inputs), outputs, REFUSALS, 48)
    return verdict if isinstance(verdict, Task) else None


def _proposing(tasks: Sequence[Task], format: Format) -> DemonstrationSet:
    return DemonstrationSet(
        "propose",
        tuple(
            Demonstration(format.propose_prompt(task.type), format.write_proposal(task))
            for task in tasks
        ),
        tuple(task.program for task in tasks),
    )


def _solving(tasks: Sequence[Task], format: Format) -> DemonstrationSet:
    return DemonstrationSet(
        "solve",
        tuple(
            Demonstration(format.solve_prompt(task), format.write_answer(task)) for task in tasks
        ),
        (tasks[0].program,),
    )


def encode_group(group: DemonstrationSet, tokenizer: Any) -> Document:
    """Ids, positions, branches and weights; only tokens of completions have a weight."""
    turns = [
        [{"role": "user", "content": demonstration.prompt}]
        for demonstration in group.demonstrations
    ]
    prompts = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    prompt_ids = tokenizer(prompts, add_special_tokens=False)["input_ids"]
    completions = [demonstration.completion for demonstration in group.demonstrations]
    completion_ids = tokenizer(completions, add_special_tokens=False)["input_ids"]
    weight = SOLVE_WEIGHT if group.phase == "solve" else 1.0
    return _document(prompt_ids, [[*ids, tokenizer.eos_token_id] for ids in completion_ids], weight)


def _document(
    prompts: Sequence[list[int]], completions: Sequence[list[int]], weight: float
) -> Document:
    shared = _common(prompts)
    ids = list(prompts[0][:shared])
    positions, branches, weights = list(range(shared)), [0] * shared, [0.0] * shared
    for branch, (prompt, completion) in enumerate(zip(prompts, completions, strict=True), 1):
        branch_tokens = [*prompt[shared:], *completion]
        ids += branch_tokens
        positions += range(shared, shared + len(branch_tokens))
        branches += [branch] * len(branch_tokens)
        weights += [0.0] * (len(prompt) - shared) + [weight] * len(completion)
    return Document(
        np.asarray(ids, dtype=np.int64),
        np.asarray(positions, dtype=np.int64),
        np.asarray(branches, dtype=np.int64),
        np.asarray(weights, dtype=np.float32),
    )


def _common(prompts: Sequence[list[int]]) -> int:
    """Number of tokens that all prompts begin with. The last token of a prompt stays in its branch,
    because the next one is predicted from it."""
    columns = zip(*prompts, strict=False)  # as many as the shortest prompt has tokens
    alike = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
    return min(alike, min(map(len, prompts)) - 1)
