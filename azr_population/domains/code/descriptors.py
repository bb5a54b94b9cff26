"""The kind of problem that a task is, as a point: the measures of the coverage archive.

Bounds and weights are fixed, so that a cell means the same in every run. Nothing is executed:
programs and literals are only parsed.
"""

import ast
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from azr_population.domains.code.complexity import Complexity, measure
from azr_population.domains.code.source import arguments, read_program
from azr_population.domains.space import Descriptor

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

A weight is the distance between the two bounds: mixes of operations and kinds of data divide the
archive first, then size and branching."""

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


def point(task: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Where a record of `tasks.jsonl` lies; None where its program cannot be parsed."""
    program = task.get("program")
    known = _of_program(program) if isinstance(program, str) else None
    return None if known is None else (*known, *of_data(task))


@lru_cache(maxsize=100_000)
def _of_program(program: str) -> tuple[float, ...] | None:
    tree, complexity = read_program(program).tree, measure(program)
    return of_program(tree, complexity) if tree and complexity else None


def words(value: Mapping[str, float]) -> str:
    """A cell in words, from the descriptor values of its centroid."""
    groups = sorted(OPERATIONS.values(), key=lambda group: -value[group])
    mix = " and ".join(group for group in dict.fromkeys(groups) if value[group] > 0.25)
    takes, gives = (
        " and ".join(kind for kind in KINDS if value[f"{verb} {kind}"] > 0.25)
        for verb in ("takes", "gives")
    )
    return (
        f"{takes or 'nothing'} to {gives or 'nothing'}, "
        f"{value['arguments']:.0f} argument{'s' * (round(value['arguments']) != 1)}; about "
        f"{2 ** value['size']:.0f} AST nodes, {value['depth']:.0f} deep, cyclomatic "
        f"{2 ** value['branching']:.0f}; {mix or 'a mix of everything'}"
    )


def of_program(tree: ast.Module, complexity: Complexity) -> tuple[float, ...]:
    """The first eight descriptors, which depend on the program alone."""
    counts = dict.fromkeys(GROUPS, 0)
    for node in ast.walk(tree):
        if group := OPERATIONS.get(type(node)):
            counts[group] += 1
    total = sum(counts.values()) or 1
    return (
        math.log2(max(1, complexity.ast_nodes)),
        float(complexity.ast_depth),
        math.log2(max(1, complexity.cyclomatic)),
        *(counts[group] / total for group in GROUPS),
    )


def of_data(task: Mapping[str, Any]) -> tuple[float, ...]:
    """The other seven descriptors, of the task's inputs and outputs."""
    inputs = [argument_kinds(text) for text in _texts(task.get("inputs"))]
    outputs = [literal_kind(text) for text in _texts(task.get("outputs"))]
    taken = [kind for kinds in inputs for kind in kinds]
    count = sum(map(len, inputs)) / len(inputs) if inputs else 0.0
    return (count, *_shares(taken), *_shares(outputs))


@lru_cache(maxsize=100_000)
def argument_kinds(source: str) -> tuple[str, ...]:
    """The kind of each argument in an argument list such as `[1, 2], 'a'`; () if unparsable."""
    return tuple(map(_kind, arguments(source)))


def literal_kind(source: str) -> str:
    """The kind of a value by the beginning of its `repr`; `""` for None and all else."""
    text = source.strip()
    if text.startswith(("'", '"', "b'", 'b"')):
        return "text"
    if text.endswith("j)"):  # a complex number
        return "number"
    if text.startswith(("[", "(", "{", "set(", "frozenset(")):
        return "collection"
    return "number" if text[:1].isdigit() or text.startswith(("-", *_WORDS)) else ""


_WORDS = ("True", "False", "inf", "nan")
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
    return "number" if isinstance(node, (ast.UnaryOp, ast.BinOp)) else ""


def _shares(kinds: Sequence[str]) -> tuple[float, ...]:
    return tuple(kinds.count(kind) / len(kinds) if kinds else 0.0 for kind in KINDS)


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []
