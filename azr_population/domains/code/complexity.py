"""How complex a program is, by measures of its text. Nothing is executed here."""

import ast
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache

from radon.visitors import ComplexityVisitor, HalsteadVisitor

from azr_population.domains.code.source import read_program
from azr_population.domains.measure import Measure

MEASURES = tuple(
    Measure(name, title, about, unit, section="complexity", short=short)
    for name, title, about, unit, short in (
        ("ast_nodes", "AST nodes", "per valid program", "AST nodes", "nodes"),
        ("ast_depth", "AST depth", "per valid program (paper, Fig 4)", "levels", ""),
        ("cyclomatic", "Cyclomatic complexity", "per valid program (paper, Fig 4)", "", ""),
        ("lines", "Lines of code", "per valid program (paper, Fig 4)", "lines", "lines"),
        ("halstead_volume", "Halstead volume", "bits, per valid program", "bits", ""),
    )
)
"""Of programs; the first is what their size is told by."""


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


@lru_cache(maxsize=1024)
def measure(program: str) -> Complexity | None:
    """Measures a program; None where it does not parse or is too long or nested to measure."""
    tree = read_program(program).tree
    if tree is None:
        return None
    try:
        cyclomatic = int(ComplexityVisitor.from_ast(tree).total_complexity)
    except RecursionError:
        return None
    nodes, depth = _size(tree)
    return Complexity(nodes, depth, cyclomatic, _lines(program))


@lru_cache(maxsize=1024)
def measures(program: str) -> Mapping[str, float]:
    """All of `MEASURES`, as far as the program can be measured."""
    tree, measured = read_program(program).tree, measure(program)
    if tree is None or measured is None:
        return {}
    volume = halstead_volume(tree)
    return asdict(measured) | ({} if volume is None else {"halstead_volume": volume})


def halstead_volume(tree: ast.Module) -> float | None:
    """Halstead's volume in bits, as radon counts: N log2 n; None where it is nested too deeply.

    N and n are all and the distinct operators and operands. To radon only arithmetic, comparisons
    and logic are operators: a program of calls and slices alone has volume 0.

    Source: Halstead, "Elements of Software Science" (1977).
    """
    try:
        visitor = HalsteadVisitor.from_ast(tree)
    except RecursionError:
        return None
    vocabulary = visitor.distinct_operators + visitor.distinct_operands
    length = visitor.operators + visitor.operands
    return length * math.log2(vocabulary) if vocabulary else 0.0


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
