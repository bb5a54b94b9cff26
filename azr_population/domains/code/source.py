"""The one place that reads the source text of programs that models write. Nothing runs here.

The trainer measures, compares and counts such programs in its own process, so no text may raise,
hang or use up memory here: every reader is bounded, and returns a value or None.
"""

import ast
import cmath
import warnings
from collections.abc import Hashable, Iterable
from functools import lru_cache

from azr_population.referee.sandbox.literal import canonical_arguments, write

MAX_CHARS = 20_000
"""Longer texts are not parsed: the parser's stack is C's, and its depth grows with the text."""

_UNREADABLE = (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError, SystemError)
"""Errors of CPython's parser: ValueError for null bytes, surrogates and numbers of over 4,300
digits, SystemError where it loses count of a deep nesting (3.11)."""


@lru_cache(maxsize=64)
def read_program(text: str) -> ast.Module | None:
    """The program's tree, which is shared and must not be changed; None for what is too long or too
    nested, or is not Python."""
    tree = _parse(text, "exec")
    return tree if isinstance(tree, ast.Module) else None


def arguments(text: str) -> list[ast.expr]:
    """The arguments in an argument list such as `[1, 2], key='a'`; empty if it is not one."""
    tree = _parse(f"f({text})", "eval")
    call = tree.body if isinstance(tree, ast.Expression) else None
    if not isinstance(call, ast.Call):
        return []
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def literal(node: ast.expr) -> str | None:
    """A literal as the referee writes it; None for any other expression, and for one beyond its
    bounds."""
    try:
        return write(ast.literal_eval(node))
    except (*_UNREADABLE, TypeError):  # NotLiteral is a ValueError
        return None


def distinct(inputs: Iterable[str]) -> list[str]:
    """The argument lists that differ in more than layout, in order."""
    by_value: dict[str, str] = {}
    for text in inputs:
        by_value.setdefault(canonical_arguments(text) or text, text)
    return list(by_value.values())


NOT_FINITE = "not_finite"
"""The reason for an input with an infinite number: infinity meets what no number does, so a task
about it says nothing."""


def is_finite(text: str) -> bool:
    """Whether no number in an argument list is infinite (`1e999`); NaN cannot be written as one
    literal, and `1e999 - 1e999` holds an infinite one."""
    numbers = (
        node.value
        for argument in arguments(text)
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant) and isinstance(node.value, (float, complex))
    )
    return all(cmath.isfinite(number) for number in numbers)


def fingerprint(text: str) -> tuple[Hashable, ...] | None:
    """A key that programs share if they differ in layout and comments only; None where the program
    does not parse.

    The nodes of the tree in preorder, with the lengths of their lists, so that equal fingerprints
    have equal trees. Nothing is written out: every tree that was parsed has one.
    """
    tree = read_program(text)
    if tree is None:
        return None
    parts: list[Hashable] = []
    stack: list[object] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Constant):
            # 1, 1.0 and True are equal and hash alike; 0.0 and -0.0 differ in their signs only.
            parts.append(("Constant", type(node.value), node.value))
        elif isinstance(node, ast.AST):
            parts.append(type(node).__name__)
            stack.extend(getattr(node, field, None) for field in reversed(node._fields))
        elif isinstance(node, list):
            parts.append(len(node))
            stack.extend(reversed(node))
        else:  # a name, None, or the conversion in an f-string
            parts.append(("value", node))
    return tuple(parts)


def _parse(text: str, mode: str) -> ast.AST | None:
    if len(text) > MAX_CHARS:
        return None
    try:
        with warnings.catch_warnings():
            # Programs written by a model are full of `is 1` and odd escapes.
            warnings.simplefilter("ignore")
            return ast.parse(text, mode=mode)
    except _UNREADABLE:
        return None
