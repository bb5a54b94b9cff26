"""Programs of the grammar, executed.

They end by construction and run in this process; what models write is run by
`azr_population.referee`. A fixed share of the programs is held out for the eval.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from azr_population.domains.code.generator.grammar import Grammar, Written
from azr_population.domains.domain import is_held_out

MAX_VALUE_CHARS = 48
_CALLS = 12


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
