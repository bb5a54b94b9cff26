"""Answers that take no thought. A puzzle that one of them solves is none.

They are what somebody would write who has not read the puzzle, or has only copied from it: small
numbers and powers of ten, empty and shortest texts and collections, and every literal that stands
in the program, the defaults of `sat` among them. Five in a hundred blind guesses at a number are
right of one number in 21; so few small numbers that are not tried would say nothing.
"""

import ast

from azr_population.domains.code.source import literal, read_program

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
    """Every answer to try, as text; the same for the same program."""
    return list(dict.fromkeys((*ALWAYS, *_written(program)[:MAX_WRITTEN])))


def _written(program: str) -> list[str]:
    """The literals in the text, as `repr` writes them."""
    tree = read_program(program).tree
    nodes = ast.walk(tree) if tree else ()
    found = (literal(node) for node in nodes if isinstance(node, _LITERALS))
    return [text for text in found if text is not None]
