"""What runs around a model's program inside the sandbox: its outputs become text, and nothing more.

`sandbox.open_referee` sends this file there as it is: Python 3.10 and later, standard library only.
A program may do with it what it likes and forges its own outputs only, because nothing of what
would be right is ever in the sandbox. Functions are called as evalplus does, contests' solutions as
LiveCodeBench does (testing_util.py).
"""

import ast
import base64
import collections.abc
import contextlib
import hashlib
import io
import itertools
import json
import marshal
import sys
import zlib
from collections.abc import Callable
from typing import Any

MAX_CHARS = 1 << 20
"""Characters that may leave the sandbox at once."""
LONGEST = 50_000
"""Characters of a value's text; longer ones are hashed."""
HASHED = 40
"""Characters of a text from which on a hash in its place saves room."""
HUGE = 1_000_000
"""Characters from which on a value's text is not even made."""
DEEPEST = 60
HEX_FROM = 10**1000
SCALARS = {int, float, bool, str, bytes, type(None)}
Line = list[str]
"""What leaves of a value: its `text`; the `hash` of one that is too long; of a value whose text
would be `huge` a hash too; or nothing (`opaque`). Then the text or hash. The type is left out: a
solution could forge it, and it shows in the text."""


class TooLong(Exception):
    """The text of a value would be longer than `HUGE`."""


class Opaque(Exception):
    """The value equals nothing (NaN), or nothing that could be told from outside."""


def line_of(value: Any) -> Line:
    """What leaves of a value."""
    try:
        text = written(value)
    except TooLong:
        return ["huge", digest_of(value).hex()[:24]]
    except Exception:
        return ["opaque", ""]
    return shortened(["text", text], LONGEST)


def shortened(line: Line, longest: int) -> Line:
    """The line, or a hash where its text is longer."""
    kind, text = line
    return ["hash", text_digest(text)] if kind == "text" and len(text) > longest else line


def record(lines: list[Line], error: str) -> str:
    """Outputs, and what was raised, as JSON, compressed, in characters that anything can carry;
    texts are hashed where all of them are too many."""
    for longest in (HUGE, HASHED):
        content = {"lines": [shortened(line, longest) for line in lines], "error": error}
        raw = json.dumps(content, separators=(",", ":")).encode("utf-8", "backslashreplace")
        packed = base64.b64encode(zlib.compress(raw, 1)).decode()
        if len(packed) < MAX_CHARS:
            return packed
    raise ValueError("the outputs are too many")


def text_digest(text: str) -> str:
    """The hash that stands for a long text."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]


def written(value: Any, room: list[int] | None = None, depth: int = 0) -> str:
    """The value as a literal. Equal values have equal texts, but for numbers of other types.

    `room[0]` is how many characters are left.
    """
    room = [HUGE] if room is None else room
    if depth > DEEPEST:
        raise Opaque
    value = plain(value)
    kind = type(value)
    if isinstance(value, (list, tuple, dict, set, frozenset, collections.abc.KeysView)):
        room[0] -= 2 + 2 * len(value)
        if room[0] < 0:
            raise TooLong
        return container(value, room, depth + 1)
    if kind is str or kind is bytes:
        if len(value) > room[0]:
            raise TooLong
        text = repr(value)
    elif kind is int:
        text = repr(value) if -HEX_FROM < value < HEX_FROM else hex(value)
    elif value is None or kind is bool:
        text = repr(value)
    elif kind is float or kind is complex:
        if value != value or (kind is complex and "inf" in repr(value)):
            raise Opaque
        text = repr(value).replace("inf", "1e999")
    else:
        text = "~" + repr(value)
        if " at 0x" in text:
            raise Opaque
    room[0] -= len(text)
    if room[0] < 0:
        raise TooLong
    return text


def container(value: Any, room: list[int], depth: int) -> str:
    """`written`, for what holds values; dicts and sets come sorted by text."""
    if isinstance(value, dict):
        pairs = [
            f"{written(key, room, depth)}: {written(item, room, depth)}"
            for key, item in value.items()
        ]
        return "{" + ", ".join(sorted(pairs)) + "}"
    items = [written(item, room, depth) for item in value]
    if isinstance(value, list):
        return "[" + ", ".join(items) + "]"
    if isinstance(value, tuple):
        return f"({items[0]},)" if len(items) == 1 else "(" + ", ".join(items) + ")"
    return "{" + ", ".join(sorted(items)) + "}" if items else "set()"


def plain(value: Any) -> Any:
    """The builtin number or text that equals one of a subclass, of numpy or of decimal."""
    kind = type(value)
    if kind in SCALARS or kind is list or kind is tuple:
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


def digest_of(value: Any) -> bytes:
    """The hash of a value too large to be written; alike for equal values of equal types."""
    if type(value) in (list, tuple):
        whole = hashlib.sha256(f"{type(value).__name__}{len(value)}".encode())
        for start in range(0, len(value), 10_000):
            whole.update(chunk_digest(value[start : start + 10_000]))
        return whole.digest()
    if isinstance(value, (set, frozenset)):
        return hashlib.sha256(b"set" + b"".join(sorted(map(digest_of, value)))).digest()
    if isinstance(value, dict):
        pairs = sorted(digest_of(key) + digest_of(item) for key, item in value.items())
        return hashlib.sha256(b"dict" + b"".join(pairs)).digest()
    return hashlib.sha256(marshal.dumps(value, 0)).digest()


def chunk_digest(items: Any) -> bytes:
    """Of a part of a list: at once where it holds scalars, or lists and tuples of scalars."""
    kinds = set(map(type, items))
    if kinds <= {list, tuple}:
        kinds = set(map(type, itertools.chain.from_iterable(items)))
    if kinds <= SCALARS:
        return hashlib.sha256(marshal.dumps(items, 0)).digest()
    return hashlib.sha256(b"".join(map(digest_of, items))).digest()


def described(error: BaseException) -> str:
    """A raised exception as a short text."""
    try:
        return f"{type(error).__name__}: {error}"[:200]
    except BaseException:
        return "an exception"


def call_all(
    solution: str, entry_point: str, inputs: bytes, time_part: Callable[[bool], None]
) -> str:
    """The `record` of a solution's function on argument lists (marshalled), up to the first that
    raises. `time_part` notes when the time of an input begins and ends."""
    sys.set_int_max_str_digits(0)
    lines: list[Line] = []
    error = ""
    try:
        scope: dict[str, Any] = {}
        exec(compile(solution, "<solution>", "exec", dont_inherit=True), scope)
        function = scope[entry_point]
        for arguments in marshal.loads(inputs):
            time_part(True)
            value = function(*arguments)
            time_part(False)
            lines.append(line_of(value))
    except BaseException as raised:
        time_part(False)
        error = described(raised)
    return record(lines, error)


def recorded(check: str, entry_point: str, canonical: str) -> str:
    """The argument lists with which `check(candidate)` calls its candidate, each as a literal."""
    scope: dict[str, Any] = {}
    exec(compile(canonical, "<canonical>", "exec", dont_inherit=True), scope)
    exec(compile(check, "<check>", "exec", dont_inherit=True), scope)
    function, seen = scope[entry_point], []

    def candidate(*arguments: Any) -> Any:
        seen.append(repr(list(arguments)))
        return function(*arguments)

    scope["check"](candidate)
    return json.dumps(seen)


MODULES = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random",
    "statistics", "itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing",
)  # fmt: skip
PRELUDE = "".join(f"from {name} import *\n" for name in MODULES) + "".join(
    f"import {name}\n" for name in MODULES[:-2]
)
"""What LiveCodeBench puts before a solution: the names of these modules, then the modules."""


def run_tests(solution: str, function: str, tests: list[str]) -> str:
    """The `record` of what a solution returns or prints for each of the tests, up to the first that
    raises. With a `function` a test is its arguments, a JSON value a line; without, it is typed."""
    lines: list[Line] = []
    error = ""
    try:
        run = method_of(solution, function) if function else script_of(solution)
        for typed in tests:
            lines.append(run(typed))
    except BaseException as raised:
        error = described(raised)
    return record(lines, error)


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
        return ["text", "\n".join(stripped_lines(printed.decode("utf-8", "replace")))]

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
