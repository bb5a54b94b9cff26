"""Runs solutions of contest problems, in the sandbox, as LiveCodeBench does (testing_util.py)."""

import ast
import contextlib
import io
import json
import sys
from collections.abc import Callable
from typing import Any

from azr_population.evals.grading.sandboxed.values import (
    LONGEST_PACKED,
    Line,
    described,
    in_room,
    line_of,
    packed,
    text_digest,
)

MODULES = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random",
    "statistics", "itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing",
)  # fmt: skip
PRELUDE = "".join(f"from {name} import *\n" for name in MODULES) + "".join(
    f"import {name}\n" for name in MODULES[:-2]
)
"""What LiveCodeBench puts before a solution: the names of these modules, then the modules."""


def run_tests(solution: str, function: str, tests: list[str]) -> str:
    """What a solution returns or prints for each of the tests, up to the first that raises; packed.

    With a `function` a test is its arguments, a JSON value a line; without, it is what is typed.
    """
    lines: list[Line] = []
    error = ""
    try:
        run = method_of(solution, function) if function else script_of(solution)
        for typed in tests:
            lines.append(run(typed))
    except BaseException as raised:
        error = described(raised)
    text = packed({"lines": lines, "error": error})
    if len(text) > LONGEST_PACKED:
        lines = in_room(lines, 0, 0) if function else [["long", lines_digest(t)] for _, t in lines]
        text = packed({"lines": lines, "error": error})
    return text


def method_of(solution: str, function: str) -> Callable[[str], Line]:
    """Calls the solution's method; a tuple counts as a list."""
    scope = started(ast.parse(solution))
    owner = scope["Solution"]() if "class Solution" in solution else None
    method = getattr(owner, function) if owner else scope[function]

    def run(typed: str) -> Line:
        value = method(*[json.loads(line) for line in typed.split("\n")])
        return line_of(list(value) if isinstance(value, tuple) else value)

    return run


def script_of(solution: str) -> Callable[[str], Line]:
    """Runs the solution as a script and takes what it prints."""
    main = started(as_function(solution))["wrapped_function"]

    def run(typed: str) -> Line:
        sys.stdin = io.TextIOWrapper(io.BytesIO(typed.encode()))
        sys.stdout = stdout = io.TextIOWrapper(io.BytesIO(), write_through=True)
        with contextlib.suppress(SystemExit):
            main()
        stdout.flush()
        printed = stdout.buffer.getvalue()
        return ["text", printed.decode("utf-8", "replace")]

    return run


def started(tree: ast.Module) -> dict[str, Any]:
    """The namespace of a solution that was run."""
    sys.setrecursionlimit(50_000)
    scope: dict[str, Any] = {"__name__": "tmp_sol"}
    exec(compile(PRELUDE, "<prelude>", "exec", dont_inherit=True), scope)
    exec(compile(ast.fix_missing_locations(tree), "<solution>", "exec", dont_inherit=True), scope)
    return scope


def as_function(solution: str) -> ast.Module:
    """The script as the body of `wrapped_function`, imports before it, its main guard opened."""
    body = ast.parse(solution).body
    last = body[-1] if body else None
    if isinstance(last, ast.If) and ast.unparse(last.test) == "__name__ == '__main__'":
        body = body[:-1] + last.body
    imports = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
    tree = ast.parse("def wrapped_function(): pass")
    wrapped = tree.body[0]
    assert isinstance(wrapped, ast.FunctionDef)
    wrapped.body = [node for node in body if node not in imports] or wrapped.body
    tree.body[:0] = imports
    return tree


def stripped_lines(text: str) -> list[str]:
    """The lines that count: blanks at their ends and around the whole do not."""
    return [line.strip() for line in text.strip().split("\n")]


def lines_digest(text: str) -> str:
    """The hash that stands for a long output."""
    return text_digest("\n".join(stripped_lines(text)))
