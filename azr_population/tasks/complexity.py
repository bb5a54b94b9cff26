"""How complex a program is, by measures of its text. Nothing is executed here."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass

from radon.visitors import ComplexityVisitor

MAX_CHARS = 20_000
"""Longer texts are not parsed: the parser's stack is C's, and its depth grows with the text."""


@dataclass(frozen=True)
class Complexity:
    """The measures of PopuLoRA's figure 4 for one program, comments and blank lines left out."""

    ast_nodes: int
    """Nodes of the abstract syntax tree without the module and the Load/Store/Del markers."""
    ast_depth: int
    """Nodes on the longest path from a top-level statement down; 0 for an empty program."""
    cyclomatic: int
    """McCabe 1976 over the whole program: decision points plus 1, as radon counts them."""
    lines: int
    """Lines that hold more than white space and comments, docstrings included."""


def measure(program: str) -> Complexity | None:
    """Measures a program; None where it does not parse or is too long or nested to measure."""
    if len(program) > MAX_CHARS:
        return None
    try:
        with warnings.catch_warnings():
            # Programs written by a model are full of `is 1` and odd escapes; that is their affair.
            warnings.simplefilter("ignore")
            tree = ast.parse(program)
        nodes, depth = _size(tree)
        cyclomatic = int(ComplexityVisitor.from_ast(tree).total_complexity)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Complexity(nodes, depth, cyclomatic, _lines(program))


def _size(tree: ast.Module) -> tuple[int, int]:
    """Nodes and depth, level by level, so that nesting costs no stack."""
    nodes = depth = 0
    level: list[ast.AST] = list(tree.body)
    while level:
        nodes += len(level)
        depth += 1
        level = [
            child
            for node in level
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.expr_context)
        ]
    return nodes, depth


def _lines(program: str) -> int:
    return sum(1 for line in program.splitlines() if line.split("#")[0].strip())
