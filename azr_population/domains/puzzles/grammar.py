"""Number puzzles, and a few of texts and lists, without end: for evals and warm-ups.

Equations, divisibility, sums of digits, small Diophantine problems; mathematics whose tasks need no
sentence to be trusted. These programs are ours and run in this process; the referee runs what a
model writes.
"""

import ast
from collections.abc import Callable
from random import Random
from typing import Any

from azr_population.domains.code.source import literal, read_program
from azr_population.domains.task import Task

PUZZLE = "puzzle"
Made = tuple[str, dict[str, int], object]
"""The condition, in x, with the names of numbers in braces; the numbers; and a value of x that
meets it."""


def puzzle_task(program: str, *witness: str) -> Task:
    """`program` with an input for which its `sat` is True; without one `sat` alone judges."""
    return Task(PUZZLE, program, witness, ("True",))


def make(rng: Random) -> Task | None:
    """A puzzle, or None if a trivial answer solves it."""
    condition, numbers, witness = rng.choices(MAKERS, WEIGHTS)[0](rng)
    # A number may be a parameter with a default.
    defaults = {name: number for name, number in numbers.items() if rng.random() < 0.4}
    condition = condition.format(**numbers | {name: name for name in defaults})
    parameters = ", ".join(["x", *(f"{name}={number}" for name, number in defaults.items())])
    program = f"def sat({parameters}):\n    return {condition}"
    space: dict[str, Any] = {}
    exec(program, space)  # of our own grammar
    if not _solves(space["sat"], witness):
        return None
    if any(_solves(space["sat"], ast.literal_eval(candidate)) for candidate in candidates(program)):
        return None
    return puzzle_task(program, repr(witness))


def _solves(sat: Callable[[object], object], answer: object) -> bool:
    try:
        return sat(answer) is True
    except (TypeError, ValueError, LookupError, ZeroDivisionError, AttributeError):
        return False  # an answer of another kind


def _linear(rng: Random) -> Made:
    x, a, b = rng.randint(11, 99), rng.randint(2, 12), rng.randint(1, 50)
    sign = rng.choice("+-")
    value = a * x + (b if sign == "+" else -b)
    return f"{{a}} * x {sign} {{b}} == {value}", {"a": a, "b": b}, x


def _both_sides(rng: Random) -> Made:
    x, a, b = rng.randint(11, 60), rng.randint(5, 12), rng.randint(2, 4)
    c = rng.randint(1, 40)
    return f"{{a}} * x - {(a - b) * x - c} == {{b}} * x + {c}", {"a": a, "b": b}, x


def _square(rng: Random) -> Made:
    x, b = rng.randint(11, 40), rng.randint(1, 30)
    return f"x > 0 and x * x + {{b}} == {x * x + b}", {"b": b}, x


def _root(rng: Random) -> Made:
    x = rng.randint(11, 40)
    return "x * x <= {a} < (x + 1) * (x + 1)", {"a": x * x + rng.randint(0, 2 * x)}, x


def _remainder(rng: Random) -> Made:
    a = rng.randint(11, 40)
    b, over = rng.randint(1, a - 1), rng.randint(40, 200)
    witness = over + 1 + (b - over - 1) % a
    return f"x % {{a}} == {b} and x > {{b}}", {"a": a, "b": over}, witness


def _remainders(rng: Random) -> Made:
    a, b = rng.sample((5, 7, 8, 9, 11, 13), 2)
    x = rng.randint(11, a * b - 1)
    return f"x % {{a}} == {x % a} and x % {{b}} == {x % b} and x > 10", {"a": a, "b": b}, x


def _divides(rng: Random) -> Made:
    p, q = rng.sample((11, 13, 17, 19, 23, 29, 31), 2)
    return "{a} % x == 0 and 1 < x < {b}", {"a": p * q, "b": p * q}, p


def _digit_sum(rng: Random) -> Made:
    x = rng.randint(20, 9999)
    total = sum(map(int, str(x)))
    return f"len(str(x)) == {len(str(x))} and sum(int(d) for d in str(x)) == {total}", {}, x


def _two_numbers(rng: Random) -> Made:
    u, v = sorted((rng.randint(3, 30), rng.randint(3, 30)))
    if rng.random() < 0.5:
        return "x[0] + x[1] == {a} and x[1] - x[0] == {b}", {"a": u + v, "b": v - u}, [u, v]
    return "x[0] + x[1] == {a} and x[0] * x[1] == {b}", {"a": u + v, "b": u * v}, [u, v]


def _diophantine(rng: Random) -> Made:
    a, b = rng.sample(range(3, 13), 2)
    u, v = rng.randint(2, 9), rng.randint(2, 9)
    numbers = {"a": a, "b": b, "c": a * u + b * v}
    return "min(x) > 0 and {a} * x[0] + {b} * x[1] == {c}", numbers, [u, v]


def _text(rng: Random) -> Made:
    letters = "".join(rng.choice("abcde") for _ in range(rng.randint(3, 6)))
    kind = rng.randrange(3)
    if kind == 0:
        return f"x[::-1] == '{letters[::-1]}'", {}, letters
    if kind == 1:
        return f"x + x == '{letters * 2}'", {}, letters
    letter, count, length = rng.choice("abc"), rng.randint(2, 4), rng.randint(5, 8)
    witness = letter * count + "d" * (length - count)
    return f"len(x) == {length} and x.count('{letter}') == {count}", {}, witness


def _list(rng: Random) -> Made:
    values = [rng.randint(1, 9) for _ in range(rng.randint(2, 4))]
    if rng.random() < 0.5:
        return f"[v * 2 for v in x] == {[2 * v for v in values]}", {}, values
    condition = f"len(x) == {len(values)} and sum(x) == {{a}} and min(x) > 0"
    return condition, {"a": sum(values)}, values


MAKERS: tuple[Callable[[Random], Made], ...] = (
    *(_linear, _both_sides, _square, _root, _remainder, _remainders),
    *(_divides, _digit_sum, _two_numbers, _diophantine, _text, _list),
)
WEIGHTS = (14, 6, 8, 8, 10, 8, 6, 10, 10, 8, 8, 8)


ALWAYS = (
    *("0", "''", "[]", "True"),  # first, one of a kind
    *map(str, (*range(1, 11), *range(-1, -11, -1), 100, 1000, 0.5)),
    *("False", "None", "'a'", "' '", "'0'", "'1'", "'ab'", "'abc'", "'hello'"),
    *("[0]", "[1]", "[0, 0]", "[1, 1]", "[0, 1]", "[1, 2]", "[1, 2, 3]", "['']", "[[]]"),
    *("()", "(0, 0)", "(1, 2)", "{}", "{0}"),
)
MAX_WRITTEN = 40
"""Literals of a program that are tried, the first ones."""

_LITERALS = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp)


def candidates(program: str) -> list[str]:
    """Trivial answers, as text; a puzzle that one of them solves is refused.

    Small numbers and powers of ten, empty and shortest texts and collections, and every literal of
    the program, including the defaults of `sat`.
    """
    tree = read_program(program)
    nodes = ast.walk(tree) if tree else ()
    texts = (literal(node) for node in nodes if isinstance(node, _LITERALS))
    written = [text for text in texts if text is not None][:MAX_WRITTEN]
    return list(dict.fromkeys((*ALWAYS, *written)))
