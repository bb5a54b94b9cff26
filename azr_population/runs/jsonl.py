"""One line of a record, read and written."""

import json
import math
from collections.abc import Iterator
from io import BufferedIOBase
from typing import Any, NoReturn

_KINDS: dict[str, type] = {
    **dict.fromkeys(("options", "fitness", "step_sizes", "shares"), dict),
    **dict.fromkeys(("parents", "inputs", "outputs", "answers", "solved", "reasons"), list),
    **dict.fromkeys(("greedy", "t0.4", "t1"), list),
    **dict.fromkeys(("child", "teacher", "student", "member", "operator", "program", "type"), str),
    **dict.fromkeys(("phase", "verdict", "reason", "prompt", "completion"), str),
    "generation": int,
}
"""What the records' fields hold, where they hold anything."""
_NUMBERS = frozenset(
    ("proposed", "valid", "solve_rate", "reward", "advantage", "log_prob", "tokens")
)
_SCORES = frozenset(("greedy", "t0.4", "t1"))

LONGEST = 4_000_000
"""Bytes of a row; the longest of ours, a prompt of 8,000 tokens, has a hundredth of it."""


def bounded(file: BufferedIOBase) -> Iterator[bytes]:
    """The lines of a file; of one longer than a row can be its beginning, so that a file that is a
    single line is never in memory whole."""
    while line := file.readline(LONGEST + 2):
        part = line
        while len(part) == LONGEST + 2 and not part.endswith(b"\n"):
            part = file.readline(LONGEST + 2)
        yield line if part is line or not part.endswith(b"\n") else line + b"\n"


def parse(line: bytes) -> dict[str, Any] | None:
    """A row of a record; None for a line that is not JSON, has no step, or holds another kind of
    thing than is ever written there. What is not a number where one belongs is left out. So nobody
    who reads a row has to ask."""
    try:
        row = _DECODER.decode(line.decode("utf-8")) if len(line) <= LONGEST else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or type(row.get("step")) is not int:
        return None
    kinds = ((value, _KINDS.get(key, object)) for key, value in row.items())
    sound = all(value is None or isinstance(value, kind) for value, kind in kinds)
    if not sound or not 0 <= row["step"] < 2**31:
        return None
    return {key: value for key, value in row.items() if not _is_no_number(key, value)}


def _is_no_number(key: str, value: Any) -> bool:
    """Whether a metric holds something else, or more than 1e100, whose square would overflow."""
    if key in _SCORES:
        return any(_is_no_number("/", score) for score in value or ())
    if key == "past/student" or ("/" not in key and key not in _NUMBERS):
        return False
    return value is not None and not (type(value) in (int, float) and abs(value) < 1e100)


def _no_number(text: str) -> NoReturn:
    """For NaN and Infinity, which are no JSON and which `line` never writes."""
    raise ValueError(text)


_DECODER = json.JSONDecoder(parse_constant=_no_number)  # `json.loads` would make one a line


def line(row: dict[str, Any]) -> str:
    """One line of strict JSON: what is not finite (a blown-up loss) becomes null."""
    try:
        return json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(_finite(row), separators=(",", ":")) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
