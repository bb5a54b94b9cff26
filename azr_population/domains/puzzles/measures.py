"""What a puzzle is like, by its text: measures, and descriptors for coverage. Nothing runs here."""

import ast
import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from azr_population.domains.code.complexity import KINDS, argument_kinds
from azr_population.domains.code.source import read_program
from azr_population.domains.metric import Metric
from azr_population.domains.space import Descriptor, Space

MEASURES = tuple(
    Metric(name, title, "per valid puzzle", unit, section="complexity", short=short)
    for name, title, unit, short in (
        ("operations", "Operations", "operations", "ops"),
        ("conditions", "Conditions", "conditions", "cond"),
        ("magnitude", "Largest number", "digits", ""),
    )
)
"""operations: of arithmetic, comparisons, calls, loops and subscripts. conditions: comparisons and
what `and` and `or` join. magnitude: digits of the largest number written."""

GROUPS = ("arithmetic", "divisibility", "power", "text and lists", "loops")
_POWERS = (ast.Pow, ast.LShift, ast.RShift)
_DIVISIONS = (ast.Mod, ast.FloorDiv, ast.Div)
_LISTED = (ast.Subscript, ast.Call, ast.List, ast.Tuple)
_LOOPS = (ast.comprehension, ast.For, ast.While)


def measure(program: str) -> dict[str, float]:
    """By the names of `MEASURES`; empty for what does not parse."""
    counted = _counted(program)
    return dict(counted[0]) if counted else {}


@lru_cache(maxsize=4096)
def _counted(program: str) -> tuple[Mapping[str, float], Mapping[str, int]] | None:
    """The measures, and how many operations of each group there are."""
    tree = read_program(program).tree
    if tree is None:
        return None
    groups = dict.fromkeys(GROUPS, 0)
    conditions, largest = 0, 0
    for node in ast.walk(tree):
        if group := _group(node):
            groups[group] += 1
        elif isinstance(node, ast.Compare):
            conditions += len(node.ops)
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            largest = max(largest, abs(node.value))
    # By bits: Python refuses to write out very long numbers.
    digits = (
        math.ceil(largest.bit_length() * math.log10(2)) if largest > 10**15 else len(str(largest))
    )
    operations = sum(groups.values()) + conditions
    figures = {"operations": operations, "conditions": conditions, "magnitude": digits}
    return {name: float(value) for name, value in figures.items()}, groups


def _group(node: ast.AST) -> str:
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        if isinstance(node.op, _DIVISIONS):
            return "divisibility"
        return "power" if isinstance(node.op, _POWERS) else "arithmetic"
    if isinstance(node, _LOOPS):
        return "loops"
    return "text and lists" if isinstance(node, _LISTED) else ""


DESCRIPTORS = (
    Descriptor("size", 0.0, 5.0, 1.0),
    Descriptor("conditions", 0.0, 3.0, 0.8),
    Descriptor("magnitude", 1.0, 6.0, 0.6),
    *(Descriptor(group, 0.0, 1.0, 0.8) for group in GROUPS),
    *(Descriptor(f"finds {kind}", 0.0, 1.0, 0.8) for kind in KINDS),
)
"""size, conditions: log2 of 1 and the measure. The groups: their shares of the operations. finds:
what the witness is."""


def point(task: Mapping[str, Any]) -> tuple[float, ...] | None:
    """A record of `tasks.jsonl` in descriptor values; None if its program cannot be parsed."""
    program, inputs = task.get("program"), task.get("inputs")
    counted = _counted(program) if isinstance(program, str) else None
    if counted is None:
        return None
    figures, groups = counted
    total = sum(groups.values()) or 1
    kinds = argument_kinds(str(inputs[0])) if isinstance(inputs, (list, tuple)) and inputs else ()
    return (
        math.log2(1.0 + figures["operations"]),
        math.log2(1.0 + figures["conditions"]),
        figures["magnitude"],
        *(groups[group] / total for group in GROUPS),
        *(float(kinds == (kind,)) for kind in KINDS),
    )


def words(value: Mapping[str, float]) -> str:
    """A cell in words, from the descriptor values of its centroid."""
    mix = " and ".join(group for group in GROUPS if value[group] > 0.25)
    finds = " or ".join(kind for kind in KINDS if value[f"finds {kind}"] > 0.25)
    return (
        f"find a {finds or 'value'}; about {2 ** value['size'] - 1:.0f} operations, "
        f"{2 ** value['conditions'] - 1:.0f} conditions, numbers of {value['magnitude']:.0f} "
        f"digits; {mix or 'a mix of everything'}"
    )


SPACE = Space(
    DESCRIPTORS,
    point,
    words,
    Path(__file__).with_name("centroids.npy"),
    panels=tuple(f"finds {kind}" for kind in KINDS),
    axes=("size", "conditions"),
    labels=("operations", "conditions"),
    ends=("0", "31"),
)
