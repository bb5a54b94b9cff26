"""The pre-training corpus: generated programs, executed, written as propose and solve documents.

Each token of a document has a branch and a weight in the loss. Branch 0 is the program; branches 1,
2, ... are input/output pairs that attend to the program but not to each other, so that one program
serves several questions, each in the form of a run. Held-out programs are left out for the eval.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from azr_population.bases.nano.executor import run_function
from azr_population.bases.nano.grammar import Grammar, Written
from azr_population.bases.nano.tail import SHARES, Construct, TailGrammar, draw_construct
from azr_population.domains.code.formats import CODE_F_INPUTS, IN, NanoFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.domain import is_held_out

O, I, F = TaskType.CODE_O, TaskType.CODE_I, TaskType.CODE_F  # noqa: E741

CHUNK = 4000
_PAIRS = 10
_DULL = frozenset({"0", "1", "2", "-1", "[]", "''"})
"""Outputs that are easy to guess; most pairs with them are left out of proposals."""

LEVELS = {
    ("propose", O): (34, 36, 22, 8),
    ("propose", I): (34, 36, 22, 8),
    ("propose", F): (78, 18, 4, 0),
    ("solve", O): (30, 34, 24, 12),
    ("solve", I): (32, 36, 22, 10),
    ("solve", F): (74, 20, 6, 0),
}
"""Weights of programs with 0, 1, 2 and 3 statements before the return, by kind of document."""

MIX = {
    ("propose", O): 12,
    ("propose", I): 9,
    ("propose", F): 12,
    ("solve", O): 36,
    ("solve", I): 14,
    ("solve", F): 17,
}
"""Weights of the kinds of documents, by number."""


@dataclass(frozen=True)
class Example:
    """A program of the grammar that runs, with pairs (argument list, `repr` of the value)."""

    program: str
    pairs: tuple[tuple[str, str], ...]
    failed: int = 0
    """Arguments on which it failed."""


def draw_example(
    grammar: Grammar, level: int, simple: bool, held_out: bool = False
) -> Example | None:
    """One program and its pairs; None if it often fails, or its value hardly depends on the
    input."""
    rng = grammar.rng
    depth = 1 if simple and rng.random() < 0.6 else 2
    written = grammar.program(level, depth, parameters=1 if simple and rng.random() < 0.7 else None)
    return examine(grammar, written, held_out)


def draw_tail_example(
    grammar: TailGrammar,
    constructs: Sequence[Construct],
    simple: bool = False,
    held_out: bool = False,
) -> Example | None:
    """As `draw_example`, of a program around these constructs."""
    return examine(grammar, grammar.tail_program(constructs, simple), held_out)


def examine(grammar: Grammar, written: Written, held_out: bool) -> Example | None:
    """The program executed on arguments drawn for it; see `draw_example` for what is refused."""
    if is_held_out(written.source) is not held_out:
        return None
    arguments = list(
        dict.fromkeys(grammar.arguments(written.parameters) for _ in range(_PAIRS + 2))
    )
    values = run_function(written.source, arguments)
    pairs = [(a, v) for a, v in zip(arguments, values, strict=True) if v is not None]
    outputs = [value for _, value in pairs]
    if (
        len(pairs) < 8
        or len(set(outputs)) < 5
        or max(map(outputs.count, outputs)) > 0.4 * len(outputs)
    ):
        return None
    if any(len(value) > 4 and value.lstrip("-").isdigit() for value in outputs):
        return None
    return Example(written.source, tuple(pairs), len(arguments) - len(pairs))


def documents(
    seed: int, chunk: int, size: int = CHUNK, strict: bool = False, tail: bool = False
) -> list[str]:
    """`size` documents as text, end-of-sequence tokens included; the same for the same numbers.

    `strict` proposals never fail and never return an argument, on none of the inputs tried, and
    code_f's inputs are ordered (`_spread`). With `tail` some programs have a construct of the long
    tail, `tail.SHARES` of them.
    """
    rng = Random(f"nano corpus {seed} {chunk}")
    grammar = TailGrammar(rng)
    kinds, weights = list(MIX), list(MIX.values())
    texts: list[str] = []
    while len(texts) < size:
        phase, type = rng.choices(kinds, weights)[0]
        if tail and rng.random() < SHARES[phase]:
            texts.append(_tail_document(grammar, phase, type, strict))
            continue
        level = rng.choices(range(4), LEVELS[phase, type])[0]
        text = _document(draw_example(grammar, level, type == F), phase, type, strict, rng)
        if text:
            texts.append(text)
    return texts


def _tail_document(grammar: TailGrammar, phase: str, type: TaskType, strict: bool) -> str:
    """Draws until one is accepted: a construct whose programs often fail is as frequent."""
    construct = draw_construct(phase, grammar.rng)
    while True:
        example = draw_tail_example(grammar, [construct], simple=type == F)
        text = _document(example, phase, type, strict, grammar.rng)
        if text:
            return text


def _document(
    example: Example | None, phase: str, type: TaskType, strict: bool, rng: Random
) -> str | None:
    if example is None:
        return None
    if strict and type == F:
        example = _spread(example)
    if strict and phase == "propose" and not _is_sound(example):
        return None
    return propose_text(type, example, rng) if phase == "propose" else solve_text(type, example)


EOS = "<eos>"


def propose_text(type: TaskType, example: Example, rng: Random) -> str | None:
    """A propose document: two inputs, each in its branch, or code_f's six in a row."""
    prompt = NanoFormat().propose_prompt(type)
    pairs = [pair for pair in example.pairs if not _is_identity(pair)]
    if type == F:
        if len(example.pairs) < CODE_F_INPUTS or len(pairs) < len(example.pairs) / 2:
            return None
        inputs = [arguments for arguments, _ in example.pairs[:CODE_F_INPUTS]]
        return f"{prompt}{example.program}{IN}{IN.join(inputs)}{EOS}"
    pairs = [pair for pair in pairs if pair[1] not in _DULL or rng.random() < 0.2]
    if len(pairs) < 2:
        return None
    return f"{prompt}{example.program}" + "".join(f"{IN}{pair[0]}{EOS}" for pair in pairs[:2])


def solve_text(type: TaskType, example: Example) -> str:
    """A solve document: several questions about one program, or code_f's three pairs."""
    format = NanoFormat()
    if type == F:
        inputs, outputs = zip(*example.pairs[:CODE_F_INPUTS], strict=True)
        task = Task(type, example.program, tuple(inputs), tuple(outputs))
        return f"{format.solve_prompt(task)}{example.program}{EOS}"
    parts: list[str] = []
    for arguments, value in example.pairs[:5]:
        task = Task(type, example.program, (arguments,), (value,))
        prompt = format.solve_prompt(task)
        if parts:
            prompt = prompt.split(example.program, 1)[1]
        parts.append(prompt + (value if type == O else arguments) + EOS)
    return "".join(parts)


def _is_sound(example: Example) -> bool:
    return example.failed == 0 and not any(map(_is_identity, example.pairs))


def _spread(example: Example) -> Example:
    """Code_f's inputs in rising order, every other one first.

    The shown half then spans the same range as the hidden half.
    """
    pairs = sorted(
        example.pairs[:CODE_F_INPUTS], key=lambda pair: ast.literal_eval(f"({pair[0]},)")
    )
    return replace(example, pairs=(*pairs[0::2], *pairs[1::2]))


def _is_identity(pair: tuple[str, str]) -> bool:
    """Whether the value is among the arguments, which the validity rules reject."""
    return pair[1] in pair[0]
