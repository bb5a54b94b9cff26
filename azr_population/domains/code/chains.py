"""Functions whose statements form a chain, on short lists of digits.

Every operation keeps the length of its list and its digits in 0-9, so that every composition is a
valid program, and can be undone, so that every output has one input. Only the number of statements
makes a task hard. Each statement has a variable of its own, a random letter: the next one is found
by its name. Letters ascend, because a base that draws them freely takes some twice. Solutions are
written with a trace, a line for each variable.
"""

import ast
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

Digits = list[int]

MIN_LENGTH, MAX_LENGTH = 3, 5
"""Fewest and most digits of an input."""
MAX_STATEMENTS = 16
"""Most statements of a program, without its `return`."""
LETTERS = "abceghjkmnopqrstuwyz"
"""Names of variables; `x` is the parameter, `d` the digit of a comprehension."""


class Operation(NamedTuple):
    """A step: its expression on the variable `{v}`, and what it does."""

    text: str
    apply: Callable[[Digits], Digits]
    undo: Callable[[Digits], Digits]
    """The input that gives this output."""


def _added(number: int) -> Operation:
    return Operation(
        f"[(d + {number}) % 10 for d in {{v}}]",
        lambda x: [(d + number) % 10 for d in x],
        lambda y: [(d - number) % 10 for d in y],
    )


OPERATIONS: dict[str, Operation] = {
    "reverse": Operation("{v}[::-1]", lambda x: x[::-1], lambda y: y[::-1]),
    "rotate_left": Operation(
        "{v}[1:] + {v}[:1]", lambda x: x[1:] + x[:1], lambda y: y[-1:] + y[:-1]
    ),
    "rotate_right": Operation(
        "{v}[-1:] + {v}[:-1]", lambda x: x[-1:] + x[:-1], lambda y: y[1:] + y[:1]
    ),
    "swap_first": Operation(
        "{v}[1::-1] + {v}[2:]", lambda x: x[1::-1] + x[2:], lambda y: y[1::-1] + y[2:]
    ),
    "swap_last": Operation(
        "{v}[:-2] + {v}[:-3:-1]", lambda x: x[:-2] + x[:-3:-1], lambda y: y[:-2] + y[:-3:-1]
    ),
    "swap_ends": Operation(
        "{v}[-1:] + {v}[1:-1] + {v}[:1]",
        lambda x: x[-1:] + x[1:-1] + x[:1],
        lambda y: y[-1:] + y[1:-1] + y[:1],
    ),
    "add_1": _added(1),
    "add_3": _added(3),
    "add_7": _added(7),
    "complement": Operation(
        "[9 - d for d in {v}]", lambda x: [9 - d for d in x], lambda y: [9 - d for d in y]
    ),
    "times_3": Operation(
        "[d * 3 % 10 for d in {v}]",
        lambda x: [d * 3 % 10 for d in x],
        lambda y: [d * 7 % 10 for d in y],
    ),
    "add_first": Operation(
        "{v}[:1] + [(d + {v}[0]) % 10 for d in {v}[1:]]",
        lambda x: x[:1] + [(d + x[0]) % 10 for d in x[1:]],
        lambda y: y[:1] + [(d - y[0]) % 10 for d in y[1:]],
    ),
}  # fmt: skip

_UNDONE = {
    ("rotate_left", "rotate_right"), ("rotate_right", "rotate_left"),
    ("add_3", "add_7"), ("add_7", "add_3"), *((name, name) for name in (
        "reverse", "swap_first", "swap_last", "swap_ends", "complement")),
}  # fmt: skip
"""Neighbours that the generator leaves out, because the second makes the first pointless."""


class Statement(NamedTuple):
    """`variable = operation(argument)`."""

    variable: str
    operation: str


Chain = Sequence[Statement]


def source(chain: Chain) -> str:
    """The program, with its `return`."""
    lines, argument = ["def f(x):"], "x"
    for variable, operation in chain:
        lines.append(f"    {variable} = {OPERATIONS[operation].text.format(v=argument)}")
        argument = variable
    return "\n".join([*lines, f"    return {argument}"])


_LINE = re.compile(r"    ([a-z]) = (.+)")


def read(program: str) -> list[Statement] | None:
    """The chain that `source` wrote, or None if the program is not a chain."""
    first, *lines = program.split("\n")
    if first != "def f(x):" or not 2 <= len(lines) <= MAX_STATEMENTS + 1:
        return None
    chain: list[Statement] = []
    argument = "x"
    for line in lines[:-1]:
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        expressions = {op.text.format(v=argument): name for name, op in OPERATIONS.items()}
        if match[2] not in expressions:
            return None
        chain.append(Statement(match[1], expressions[match[2]]))
        argument = match[1]
    names = [statement.variable for statement in chain]
    if names != sorted(set(names)) or not set(names) <= set(LETTERS):
        return None
    return chain if lines[-1] == f"    return {argument}" else None


def read_digits(text: str) -> Digits | None:
    """The list in the text, or None if it is not a list of digits of a length that occurs."""
    if not re.fullmatch(r"\[[0-9](, [0-9])*\]", text):
        return None
    digits: Digits = ast.literal_eval(text)
    return digits if MIN_LENGTH <= len(digits) <= MAX_LENGTH else None


def run(chain: Chain, x: Digits) -> list[Digits]:
    """The value of each statement."""
    values: list[Digits] = []
    for _, operation in chain:
        x = OPERATIONS[operation].apply(x)
        values.append(x)
    return values


def trace(program: str, input: str) -> str | None:
    """The answer of code_o: a line for each variable, and the value; None where the program is not
    a chain, or the input is none of its inputs."""
    chain, x = read(program), read_digits(input)
    if chain is None or x is None:
        return None
    values = run(chain, x)
    lines = [f"{s.variable}={value}" for s, value in zip(chain, values, strict=True)]
    return "\n".join([*lines, str(values[-1])])


def trace_back(program: str, output: str) -> str | None:
    """The answer of code_i: a line for each variable but the last, backwards, and the input; None
    as of `trace`."""
    chain, value = read(program), read_digits(output)
    if chain is None or value is None:
        return None
    lines = []
    for n in range(len(chain) - 1, -1, -1):
        value = OPERATIONS[chain[n].operation].undo(value)
        lines.append(f"{chain[n - 1].variable}={value}" if n else str(value))
    return "\n".join(lines)


def draw_chain(rng: Random, depth: int) -> list[Statement]:
    """A chain of this many statements."""
    operations: list[str] = []
    while len(operations) < depth:
        name = rng.choice(list(OPERATIONS))
        if not operations or (operations[-1], name) not in _UNDONE:
            operations.append(name)
    names = sorted(rng.sample(LETTERS, depth))
    return [Statement(*pair) for pair in zip(names, operations, strict=True)]


def draw_digits(rng: Random) -> Digits:
    """An input."""
    return [rng.randrange(10) for _ in range(rng.randint(MIN_LENGTH, MAX_LENGTH))]


def draw_pairs(rng: Random, chain: Chain, count: int) -> list[tuple[str, str]] | None:
    """Different inputs with their outputs, none of which is its input; None for a chain that mostly
    gives its input."""
    pairs: dict[str, str] = {}
    for _ in range(4 * count + 8):
        x = draw_digits(rng)
        value = run(chain, x)[-1]
        if value != x:
            pairs[str(x)] = str(value)
        if len(pairs) == count:
            return list(pairs.items())
    return None
