"""Made-up completions of function problems: right ones, and wrong ones of many kinds.

A model is not needed to compare graders; what is needed is programs of which some pass. Ten kinds
are made of a problem's canonical solution.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator

from azr_population.measuring.evaluation.problem import FunctionProblem

_COMPARE = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_BINARY = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Every program with one operator changed: (what was done, the program).

    Operators first; then, where a program has none or for more of them, its integers and constants.
    """
    tree = ast.parse(source)
    sites = [node for node in ast.walk(tree) if _changes(node)]
    for kind in (_is_operator, lambda node: not _is_operator(node)):
        for site in filter(kind, sites):
            for number in range(len(_changes(site))):
                changed = copy.deepcopy(tree)
                twin = next(
                    new
                    for old, new in zip(ast.walk(tree), ast.walk(changed), strict=True)
                    if old is site
                )
                what = _changes(twin)[number]()
                ast.fix_missing_locations(changed)
                yield f"line {site.lineno}: {what}", ast.unparse(changed)


def _is_operator(node: ast.AST) -> bool:
    return not isinstance(node, (ast.Constant, ast.Return))


def _changes(node: ast.AST) -> list:
    """What may be done to a node; each is a function that does it in place and says what."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        return [lambda: _set(node.ops, 0, _COMPARE[type(node.ops[0])]())]
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _BINARY:
        return [lambda: _put(node, _BINARY[type(node.op)]())]
    if isinstance(node, ast.BoolOp):
        return [lambda: _put(node, ast.Or() if isinstance(node.op, ast.And) else ast.And())]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return [lambda: _put(node, ast.UAdd())]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return [lambda: _constant(node, node.value + 1)]
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        return [lambda: _constant(node, not node.value)]
    if isinstance(node, ast.Return) and not _is_none(node.value):
        return [lambda: _nothing(node)]
    return []


def _is_none(value: ast.AST | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _set(ops: list, place: int, new: ast.AST) -> str:
    said = f"{type(ops[place]).__name__} -> {type(new).__name__}"
    ops[place] = new
    return said


def _put(node: ast.AST, new: ast.AST) -> str:
    said = f"{type(node.op).__name__} -> {type(new).__name__}"
    node.op = new
    return said


def _constant(node: ast.Constant, new: object) -> str:
    said = f"{node.value} -> {new}"
    node.value = new
    return said


def _nothing(node: ast.Return) -> str:
    node.value = ast.Constant(None)
    return "returns None"


def samples(problem: FunctionProblem, seed: int = 1) -> list[tuple[str, str]]:
    """Ten completions of a problem, (kind, program), of which about four are right."""
    draw = random.Random(f"{seed} {problem.id}")
    canonical, name = problem.canonical, problem.entry_point
    changed = [source for _, source in mutants(canonical)]
    draw.shuffle(changed)
    wrong = (changed + [f"def {name}(*a):\n    return 'no'"] * 4)[:4]
    lines = canonical.rstrip().splitlines()
    made = [
        ("canonical", canonical),
        ("unparsed", ast.unparse(ast.parse(canonical))),
        ("with a main guard", f"{canonical}\nif __name__ == '__main__':\n    {name}()\n"),
        ("talkative", f"print('hello')\n{canonical}\nresult = 'done'\nprint(result)\n"),
        *(("mutant", source) for source in wrong),
        ("truncated", "\n".join(lines[: max(1, len(lines) - 1)])),
    ]
    last = draw.random()
    if last < 0.08:
        made.append(("endless", f"def {name}(*a):\n    while True:\n        pass\n"))
    elif last < 0.5:
        made.append(("signature", f"def {name}(one, two, three, four, five):\n    return one\n"))
    else:
        made.append(("no function", f"def other(*a):\n    return {name}\n"))
    return made
