"""MBPP+ through our judge: every canonical solution, and each with one operator changed.

    python benchmarks/evals_mutants.py --data DIR [--json FILE]

All canonical solutions must pass. The first mutant of each is judged: an operator is changed, or a
constant or returned value if there is no operator (`mutants`). A mutant that passes is listed with
the reason: it is equivalent, or the benchmark's tests miss it; then the same judge must fail it on
an input on which the two differ.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from azr_population import versions
from azr_population.evals.benchmarks import FunctionProblem, read_benchmark
from azr_population.evals.grading.functions import FunctionJudge

EQUIVALENT = {
    "Mbpp/62": "changes the assert on []: it raises either way",
    "Mbpp/103": "for m >= n > 0 both terms of the recursion are 0 by induction",
    "Mbpp/123": "differs for squares only, and no square below 30,000 makes or breaks a pair",
    "Mbpp/133": "adds zeros to a sum",
    "Mbpp/141": "one more pass over a prefix of one element",
    "Mbpp/162": "the sum for n = 0 is 0",
    "Mbpp/235": "n == mask has that bit already",
    "Mbpp/260": "for n = 0 and n = 1 the loop is empty and the result is 1",
    "Mbpp/264": "both branches give 21 at an age of 2",
    "Mbpp/428": "shell sort from a larger gap, which comes down to 1 as well",
    "Mbpp/435": "-0 is 0",
    "Mbpp/583": "the loop gives 1 for 1",
    "Mbpp/589": "swaps two equal numbers",
    "Mbpp/622": "the value is overwritten before it is read",
}
"""Why the first mutant of a problem is the same function."""
WITNESSES: dict[str, list[Any]] = {
    "Mbpp/166": [[2, 4]],
    "Mbpp/733": [[1, 2], 3],
    "Mbpp/751": [[2, 1]],
    "Mbpp/763": [(1, 1000), 2],
}
"""Arguments on which a first mutant differs although all tests of MBPP+ pass."""


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
    """Every program with one operator changed: (the change, the program).

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
    """Possible changes of a node: functions that change it in place and return a description."""
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
    change = f"{type(ops[place]).__name__} -> {type(new).__name__}"
    ops[place] = new
    return change


def _put(node: ast.AST, new: ast.AST) -> str:
    change = f"{type(node.op).__name__} -> {type(new).__name__}"
    node.op = new
    return change


def _constant(node: ast.Constant, new: object) -> str:
    change = f"{node.value} -> {new}"
    node.value = new
    return change


def _nothing(node: ast.Return) -> str:
    node.value = ast.Constant(None)
    return "returns None"


def first_mutants(problems: list[FunctionProblem]) -> list[tuple[FunctionProblem, str, str]]:
    """(problem, what was changed, the program) of each problem that has a mutant."""
    pairs = ((problem, next(mutants(problem.canonical), None)) for problem in problems)
    return [(problem, *mutant) for problem, mutant in pairs if mutant]


def survivor(problem: FunctionProblem, source: str, judge: FunctionJudge) -> tuple[str, str]:
    """(`equivalent`, why), (`not tested`, a revealing input), or (`unexplained`, '')."""
    if problem.id in EQUIVALENT:
        return "equivalent", EQUIVALENT[problem.id]
    if problem.id in WITNESSES:
        asked = replace(problem, base_inputs=[WITNESSES[problem.id]], plus_inputs=[])
        (verdict,) = judge.judge([(asked, source)])
        if not verdict.passed:
            return "not tested", f"fails on {WITNESSES[problem.id]}, which MBPP+ does not have"
    return "unexplained", ""


def measured(problems: list[FunctionProblem], processes: int) -> dict[str, Any]:
    """Counts of reasons, and the survivors with theirs."""
    with FunctionJudge(processes) as judge:
        canonical = judge.judge([(problem, problem.canonical) for problem in problems])
        changed = first_mutants(problems)
        verdicts = judge.judge([(problem, source) for problem, _, source in changed])
        survivors = []
        for (problem, what, source), verdict in zip(changed, verdicts, strict=True):
            if verdict.passed:
                kind, why = survivor(problem, source, judge)
                survivors.append({"id": problem.id, "change": what, "kind": kind, "why": why})
    return {
        "problems": len(problems),
        "canonical": dict(Counter(verdict.reason for verdict in canonical)),
        "mutants": dict(Counter(verdict.reason for verdict in verdicts)),
        "survivors": survivors,
    }


def main() -> None:
    """Prints the figures, and writes them where `--json` says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    data = read_benchmark("mbpp_plus", str(arguments.data))
    figures = measured(data.problems, arguments.processes)  # type: ignore[arg-type]
    for line in (f"{key}: {figures[key]}" for key in ("problems", "canonical", "mutants")):
        print(line)
    for survivor in figures["survivors"]:
        print(f"{survivor['id']} ({survivor['change']}): {survivor['kind']}: {survivor['why']}")
    if arguments.json:
        about = {"data": data.identity, "environment": versions.environment("evalplus")}
        arguments.json.write_text(json.dumps({**about, **figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
