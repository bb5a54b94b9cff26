"""MBPP+ through our judge: every canonical solution, and each with one operator changed.

    python perf/evals_mutants.py --data DIR [--json FILE]

All canonical solutions must pass. The first mutant of each is judged: an operator is changed, or a
constant or returned value if there is no operator. A mutant that passes is listed with
the reason: it is equivalent, or the benchmark's tests miss it; then the same judge must fail it on
an input on which the two differ.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from azr_population import versions
from azr_population.benchmark.benchmarks import read_benchmark
from azr_population.benchmark.functions import FunctionProblem

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


def first_mutant(source: str) -> tuple[str, str] | None:
    """(the change, the program) with one operator changed; or, where it has none, one constant or
    returned value. None where there is nothing to change."""
    values = (ast.Constant, ast.Return)
    for wants_values in (False, True):
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, values) == wants_values and (change := _mutate(node)):
                ast.fix_missing_locations(tree)
                return f"line {node.lineno}: {change}", ast.unparse(tree)
    return None


def _mutate(node: ast.AST) -> str:
    """Changes the node in place and returns what was changed; '' for nothing."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _COMPARE:
            new = _COMPARE[type(op)]
            node.ops = [new()]
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _BINARY:
            new = _BINARY[type(op)]
            node.op = new()
        case ast.BoolOp(op=op):
            new = ast.Or if isinstance(op, ast.And) else ast.And
            node.op = new()
        case ast.UnaryOp(op=ast.USub() as op):
            new = ast.UAdd
            node.op = new()
        case ast.Constant(value=value) if type(value) in (int, bool):
            node.value = not value if type(value) is bool else value + 1
            return f"{value} -> {node.value}"
        case ast.Return(value=value) if value and getattr(value, "value", "") is not None:
            node.value = ast.Constant(None)
            return "returns None"
        case _:
            return ""
    return f"{type(op).__name__} -> {new.__name__}"


def survivor(problem: FunctionProblem, source: str) -> tuple[str, str]:
    """(`equivalent`, why), (`not tested`, a revealing input), or (`unexplained`, '')."""
    if problem.id in EQUIVALENT:
        return "equivalent", EQUIVALENT[problem.id]
    if problem.id in WITNESSES:
        asked = replace(problem, base_inputs=[WITNESSES[problem.id]], plus_inputs=[])
        (verdict,) = FunctionProblem.judge([(asked, source)])
        if not verdict.passed:
            return "not tested", f"fails on {WITNESSES[problem.id]}, which MBPP+ does not have"
    return "unexplained", ""


def measured(problems: list[FunctionProblem]) -> dict[str, Any]:
    """Counts of reasons, and the survivors with theirs."""
    canonical = FunctionProblem.judge([(problem, problem.canonical) for problem in problems])
    pairs = ((problem, first_mutant(problem.canonical)) for problem in problems)
    changed = [(problem, *mutant) for problem, mutant in pairs if mutant]
    verdicts = FunctionProblem.judge([(problem, source) for problem, _, source in changed])
    survivors = []
    for (problem, what, source), verdict in zip(changed, verdicts, strict=True):
        if verdict.passed:
            kind, why = survivor(problem, source)
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
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    data = read_benchmark("mbpp_plus", str(arguments.data))
    figures = measured(data.problems)  # type: ignore[arg-type]
    for line in (f"{key}: {figures[key]}" for key in ("problems", "canonical", "mutants")):
        print(line)
    for survivor in figures["survivors"]:
        print(f"{survivor['id']} ({survivor['change']}): {survivor['kind']}: {survivor['why']}")
    if arguments.json:
        about = {"data": data.identity, "environment": versions.environment("evalplus")}
        arguments.json.write_text(json.dumps({**about, **figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
