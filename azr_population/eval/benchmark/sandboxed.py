"""Runs a model's program inside the sandbox and turns its outputs into text.

`sandbox.run` sends this file there as it is: Python 3.10 and later, standard library only.
A program that tampers with it can forge its own outputs only, because expected outputs never enter
the sandbox. Functions are called as in evalplus, contests' solutions as in LiveCodeBench
(testing_util.py).
"""

import ast
import base64
import builtins
import collections.abc
import contextlib
import hashlib
import io
import json
import marshal
import sys
import threading
import zlib
from collections.abc import Callable
from typing import Any

MAX_CHARS = 1 << 20
"""Characters that may leave the sandbox at once."""
LONGEST = 50_000
"""Characters of a value's text; longer ones are hashed."""
HASHED = 40
"""Characters of a text above which a hash is shorter."""
DEEPEST = 60
EXACT = {int, bool, str, bytes, type(None)}
"""Types whose `repr` is their literal."""
Line = list[str]
"""A value outside the sandbox: [`text`, text], [`hash`, hash of a long text] or [`opaque`, ""]. The
type is left out: a solution could forge it, and the text shows it."""


class Opaque(Exception):
    """The value equals nothing (NaN), or cannot be compared outside the sandbox."""


def encode(value: Any) -> Line:
    """The `Line` of a value."""
    try:
        if type(value) in (list, tuple) and len(value) > LONGEST:
            return ["hash", chunked_digest(value)]
        return shortened(["text", written(value)], LONGEST)
    except Exception:
        return ["opaque", ""]


def shortened(line: Line, longest: int) -> Line:
    """The line, or a hash where its text is longer."""
    kind, text = line
    return ["hash", text_digest(text)] if kind == "text" and len(text) > longest else line


def record(lines: list[Line], error: str) -> str:
    """Outputs, and what was raised, as JSON, compressed, in characters that anything can carry;
    texts are hashed where all of them are too many."""
    for longest in (LONGEST, HASHED):
        content = {"lines": [shortened(line, longest) for line in lines], "error": error}
        raw = json.dumps(content, separators=(",", ":")).encode("utf-8", "backslashreplace")
        packed = base64.b64encode(zlib.compress(raw, 1)).decode()
        if len(packed) < MAX_CHARS:
            return packed
    raise ValueError("the outputs are too many")


def text_digest(text: str) -> str:
    """The hash that stands for a long text."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]


def chunked_digest(value: Any) -> str:
    """The hash of a list or tuple whose text would fill the memory (as of Mbpp/255)."""
    sha256 = hashlib.sha256(type(value).__name__.encode())
    for start in range(0, len(value), 10_000):
        text = repr(value[start : start + 10_000])
        sha256.update(text.encode("utf-8", "backslashreplace"))
    return sha256.hexdigest()[:24]


def written(value: Any, depth: int = 0) -> str:
    """The value as a literal. Equal values have equal texts, except numbers of different types."""
    if depth > DEEPEST:
        raise Opaque
    value = plain(value)
    kind = type(value)
    if kind in (list, tuple) and set(map(type, value)) <= EXACT:
        return repr(value)  # the same text, faster
    if isinstance(value, (list, tuple, dict, set, frozenset, collections.abc.KeysView)):
        return container(value, depth + 1)
    if kind in EXACT:
        return repr(value)
    if kind is float or kind is complex:
        if value != value or (kind is complex and "inf" in repr(value)):
            raise Opaque
        return repr(value).replace("inf", "1e999")
    text = "~" + repr(value)
    if " at 0x" in text:
        raise Opaque
    return text


def container(value: Any, depth: int) -> str:
    """`written`, for what holds values; dicts and sets come sorted by text."""
    if isinstance(value, dict):
        pairs = [f"{written(key, depth)}: {written(item, depth)}" for key, item in value.items()]
        return "{" + ", ".join(sorted(pairs)) + "}"
    items = [written(item, depth) for item in value]
    if isinstance(value, list):
        return "[" + ", ".join(items) + "]"
    if isinstance(value, tuple):
        return f"({items[0]},)" if len(items) == 1 else "(" + ", ".join(items) + ")"
    return "{" + ", ".join(sorted(items)) + "}" if items else "set()"


def plain(value: Any) -> Any:
    """The builtin number or text that equals one of a subclass, of numpy or of decimal."""
    kind = type(value)
    if kind in EXACT or kind in (float, list, tuple):
        return value
    for scalar in (int, float, complex, str, bytes):
        if isinstance(value, scalar):
            return scalar(value)  # type: ignore[arg-type]
    module = getattr(kind, "__module__", "")
    if module == "numpy" and getattr(value, "shape", None) == ():
        return value.item()
    if module in ("decimal", "fractions") and float(value) == value:
        return float(value)
    return value


def described(error: BaseException) -> str:
    """A raised exception as a short text."""
    try:
        return f"{type(error).__name__}: {error}"[:200]
    except BaseException:
        return "an exception"


def outputs_of(
    start: Callable[[], Callable[[Any], Any]], inputs: Any, time_part: Callable[[bool], None]
) -> str:
    """The `record` of the outputs for these inputs, up to the first that raises, of the function
    that `start` returns. `time_part` notes when the time of the start or an input begins and
    ends."""
    lines: list[Line] = []
    error = ""
    try:
        time_part(True)
        run = start()
        time_part(False)
        for input in inputs:
            time_part(True)
            value = run(input)
            time_part(False)
            lines.append(encode(value))
    except BaseException as raised:
        time_part(False)
        error = described(raised)
    return record(lines, error)


def call_all(
    solution: str, entry_point: str, inputs: bytes, time_part: Callable[[bool], None]
) -> str:
    """The `record` of a solution's function on argument lists (marshalled)."""
    sys.set_int_max_str_digits(0)

    def start() -> Callable[[Any], Any]:
        scope: dict[str, Any] = {}
        exec(compile(solution, "<solution>", "exec", dont_inherit=True), scope)
        function = scope[entry_point]
        return lambda arguments: function(*arguments)

    return outputs_of(start, marshal.loads(inputs), time_part)


MODULES = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random",
    "statistics", "itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing",
)  # fmt: skip
PRELUDE = "".join(f"from {name} import *\n" for name in MODULES) + "".join(
    f"import {name}\n" for name in MODULES[:-2]
)
"""LiveCodeBench's first lines of a solution: the names of these modules, then the modules."""


def run_tests(
    solution: str, function: str, tests: list[str], time_part: Callable[[bool], None]
) -> str:
    """The `record` of what a solution returns or prints for each of the tests. With a `function` a
    test is its arguments, a JSON value a line; without, it is standard input."""

    def start() -> Callable[[Any], Any]:
        return method_of(solution, function) if function else script_of(solution)

    return outputs_of(start, tests, time_part)


def method_of(solution: str, function: str) -> Callable[[str], Any]:
    """Calls the solution's method; a tuple counts as a list."""
    scope = started(ast.parse(solution))
    owner = scope["Solution"]() if "class Solution" in solution else None
    method = getattr(owner, function) if owner else scope[function]

    def run(typed: str) -> Any:
        value = method(*[json.loads(line) for line in typed.split("\n")])
        return list(value) if isinstance(value, tuple) else value

    return run


def script_of(solution: str) -> Callable[[str], str]:
    """Runs the solution as a script and returns what it prints. Each test has a standard input of
    its own; the one that was there when the solution was loaded (`from sys import stdin`) answers
    as LiveCodeBench lets it, with lines that have no line break."""
    loaded: Any = _stream(b"")
    sys.stdin = loaded
    main = started(as_function(solution))["wrapped_function"]
    start: Any = run_in_place
    threading.Thread.start, threading.Thread.join = start, lambda *_, **__: None  # type: ignore

    def run(typed: str) -> str:
        lines = iter(typed.split("\n"))
        loaded.read, loaded.readlines = lambda *_: typed, lambda *_: typed.split("\n")
        loaded.readline = lambda *_: next(lines)
        sys.stdin, sys.stdout = _stream(typed.encode()), (stdout := _stream(b""))
        # For modules such as fileinput; the solution has the name from the prelude.
        builtins.open = lambda *_, **__: io.StringIO(typed)  # type: ignore
        with contextlib.suppress(SystemExit):
            main()
        stdout.flush()
        return stripped_lines(stdout.buffer.getvalue().decode("utf-8", "replace"))  # type: ignore

    return run


def _stream(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), write_through=True)


def run_in_place(thread: threading.Thread) -> None:
    """Takes the place of `Thread.start`: the sandbox has one thread, and a contest's solution
    starts another for its larger stack. What it raises ends the thread alone."""
    with contextlib.suppress(Exception, SystemExit):
        thread.run()


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


def stripped_lines(text: str) -> str:
    """Printed text without blanks at the ends of lines and around the text."""
    return "\n".join(line.strip() for line in text.strip().split("\n"))
