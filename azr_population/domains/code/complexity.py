"""Complexity of programs and descriptors of tasks, from their text: nothing is run."""

import ast
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from radon.visitors import ComplexityVisitor, HalsteadVisitor

from azr_population.domains.code.source import arguments, read_program
from azr_population.domains.metric import Metric
from azr_population.domains.space import Descriptor, Space
from azr_population.domains.task import texts_in

MEASURES = tuple(
    Metric(name, title, about, unit, section="complexity", short=short)
    for name, title, about, unit, short in (
        ("ast_nodes", "AST nodes", "per valid program", "AST nodes", "nodes"),
        ("ast_depth", "AST depth", "per valid program (paper, Fig 4)", "levels", ""),
        ("cyclomatic", "Cyclomatic complexity", "per valid program (paper, Fig 4)", "", ""),
        ("lines", "Lines of code", "per valid program (paper, Fig 4)", "lines", "lines"),
        ("variables", "Variables", "per valid program (paper, Fig 4)", "variables", ""),
        ("halstead_volume", "Halstead volume", "bits, per valid program", "bits", ""),
    )
)
"""Measures of programs; the first is their size."""


class _DecisionPoints(ComplexityVisitor):
    """radon's decision points plus 1, with those of functions and classes at any depth: radon adds
    one for each method, and leaves out closures and nested classes."""

    visit_FunctionDef = visit_ClassDef = ComplexityVisitor.generic_visit

    def visit_Assert(self, node: ast.Assert) -> None:
        self.complexity += 1
        self.generic_visit(node)


@lru_cache(maxsize=1024)
def measures(program: str) -> Mapping[str, float]:
    """All of `MEASURES`, comments and blank lines left out; empty where the program does not parse
    or is too long or nested to measure.

    ast_nodes: without the module and the Load/Store/Del markers. ast_depth: nodes on the longest
    path from a top-level statement down. cyclomatic: McCabe 1976 over the whole program, decision
    points, as radon counts them, plus 1. lines: those that hold more than white space and comments,
    docstrings included. variables: distinct names of parameters and of what is assigned to.
    halstead_volume: in bits, as radon counts, N log2 n of all and the distinct
    operators and operands (Halstead, "Elements of Software Science", 1977); to radon only
    arithmetic, comparisons and logic are operators. It is missing where radon cannot count it.
    """
    tree = read_program(program)
    if tree is None:
        return {}
    measured: dict[str, float] = {}
    with suppress(RecursionError):
        cyclomatic = _DecisionPoints.from_ast(tree).complexity
        nodes, depth = _size(tree)
        lines = sum(
            1 for line in program.replace("\r", "\n").split("\n") if line.split("#")[0].strip()
        )
        measured = {
            "ast_nodes": nodes, "ast_depth": depth, "cyclomatic": cyclomatic, "lines": lines,
            "variables": _variables(tree),
        }  # fmt: skip
        counts = HalsteadVisitor.from_ast(tree)
        vocabulary = counts.distinct_operators + counts.distinct_operands
        length = counts.operators + counts.operands
        measured["halstead_volume"] = length * math.log2(vocabulary) if vocabulary else 0.0
    return measured


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


def _variables(tree: ast.Module) -> int:
    """Distinct names of parameters and of what is assigned to, loops and `with` included."""
    names = {
        node.arg if isinstance(node, ast.arg) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }
    return len(names)


KINDS = ("number", "text", "collection")
GROUPS = ("arithmetic", "logic", "iteration", "access", "calls")


DESCRIPTORS = (
    Descriptor("size", 3.0, 7.0, 1.0),
    Descriptor("depth", 4.0, 12.0, 0.6),
    Descriptor("branching", 0.0, 3.2, 0.8),
    *(Descriptor(group, 0.0, 1.0, 0.8) for group in GROUPS),
    Descriptor("arguments", 1.0, 3.0, 0.4),
    *(Descriptor(f"takes {kind}", 0.0, 1.0, 0.6) for kind in KINDS),
    *(Descriptor(f"gives {kind}", 0.0, 1.0, 0.6) for kind in KINDS),
)
"""size: log2 of the AST nodes. depth: of the AST. branching: log2 of McCabe's complexity.
arithmetic, logic, iteration, access, calls: their shares of the program's operations (see
`OPERATIONS`). arguments: their number. takes, gives: the shares of arguments and of outputs that
are numbers (or booleans), text (or bytes) and collections; None is none of these. The task's type
is not a descriptor: types are proposed in equal numbers, so it would only split every cell.

By their weights, mixes of operations and kinds of data divide the archive first, then size and
branching."""

OPERATIONS: dict[type[ast.AST], str] = {
    **dict.fromkeys((ast.BinOp, ast.UnaryOp, ast.AugAssign), "arithmetic"),
    **dict.fromkeys((ast.Compare, ast.BoolOp, ast.If, ast.IfExp, ast.Match), "logic"),
    **dict.fromkeys((ast.For, ast.While, ast.comprehension), "iteration"),
    **dict.fromkeys(
        (ast.Subscript, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.JoinedStr), "access"
    ),
    ast.Call: "calls",
}
"""AST nodes that count as operations; building a collection counts as access."""


def descriptor_values(task: Mapping[str, Any]) -> tuple[float, ...] | None:
    """A record of `tasks.jsonl` in descriptor values; None if its program cannot be parsed."""
    program = task.get("program")
    descriptors = _program_descriptors(program) if isinstance(program, str) else None
    return None if descriptors is None else (*descriptors, *data_descriptors(task))


@lru_cache(maxsize=100_000)
def _program_descriptors(program: str) -> tuple[float, ...] | None:
    """The first eight descriptors, which depend on the program alone."""
    tree, measured = read_program(program), measures(program)
    if tree is None or not measured:
        return None
    counts = dict.fromkeys(GROUPS, 0)
    for node in ast.walk(tree):
        if group := OPERATIONS.get(type(node)):
            counts[group] += 1
    total = sum(counts.values()) or 1
    return (
        math.log2(max(1, measured["ast_nodes"])),
        float(measured["ast_depth"]),
        math.log2(max(1, measured["cyclomatic"])),
        *(counts[group] / total for group in GROUPS),
    )


def data_descriptors(task: Mapping[str, Any]) -> tuple[float, ...]:
    """The other seven descriptors, of the task's inputs and outputs."""
    inputs = [argument_kinds(text) for text in texts_in(task.get("inputs"))]
    outputs = [argument_kinds(text) for text in texts_in(task.get("outputs"))]
    count = sum(map(len, inputs)) / len(inputs) if inputs else 0.0
    return (count, *_shares(inputs), *_shares(outputs))


@lru_cache(maxsize=100_000)
def argument_kinds(source: str) -> tuple[str, ...]:
    """The kind of each argument in an argument list such as `[1, 2], 'a'`, or of one value; `""`
    for None and all else; () if unparsable."""
    return tuple(map(_kind, arguments(source)))


_COLLECTIONS = (
    *(ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Call),
    *(ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp),
)


def _kind(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (str, bytes)):
            return "text"
        return "" if node.value is None or node.value is ... else "number"
    if isinstance(node, ast.JoinedStr):
        return "text"
    if isinstance(node, _COLLECTIONS):
        return "collection"
    infinite = isinstance(node, ast.Name) and node.id in ("inf", "nan")
    return "number" if infinite or isinstance(node, (ast.UnaryOp, ast.BinOp)) else ""


def _shares(texts: Sequence[Sequence[str]]) -> tuple[float, ...]:
    kinds = [kind for kinds in texts for kind in kinds]
    return tuple(kinds.count(kind) / len(kinds) if kinds else 0.0 for kind in KINDS)


SPACE = Space(
    DESCRIPTORS,
    Path(__file__).with_name("centroids.npy"),
    point=descriptor_values,
)
