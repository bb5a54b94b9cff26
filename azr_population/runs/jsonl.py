"""Reads and writes one line of a record."""

import json
import math
from collections.abc import Iterator
from io import BufferedIOBase
from typing import Any, NoReturn

from azr_population.runs.records import finite_or_none

_KINDS: dict[str, type] = {
    **dict.fromkeys(("options", "fitness", "shares"), dict),
    **dict.fromkeys(("parents", "inputs", "outputs", "answers", "solved", "reasons"), list),
    **dict.fromkeys(("greedy", "t1"), list),
    **dict.fromkeys(("child", "teacher", "student", "member", "operator", "program", "type"), str),
    **dict.fromkeys(("phase", "verdict", "reason", "prompt", "completion"), str),
    "generation": int,
}
"""The types of the records' fields; null is always allowed."""
_NUMBERS = frozenset(
    ("proposed", "valid", "solve_rate", "reward", "advantage", "log_prob", "tokens")
)
_SCORES = frozenset(("greedy", "t1"))

LONGEST = 4_000_000
"""Most bytes of a row; our longest, with a prompt of 8,000 tokens, has a hundredth of it."""


def bounded(file: BufferedIOBase, longest: int = LONGEST) -> Iterator[bytes]:
    """The lines of a file. Of a line of more than `longest` bytes only the beginning is read, so
    that a file that is one line is never in memory as a whole."""
    while line := file.readline(longest + 2):
        part = line
        while len(part) == longest + 2 and not part.endswith(b"\n"):
            part = file.readline(longest + 2)
        yield line if part is line or not part.endswith(b"\n") else line + b"\n"


def parse(line: bytes) -> dict[str, Any] | None:
    """A row of a record; None for a line that is not JSON, has no step, or has a field of another
    type than we write. A metric that is not a number is null, as one that blew up. Readers of a
    row can rely on it."""
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
    return {key: value if _sound_metric(key, value) else None for key, value in row.items()}


def _sound_metric(key: str, value: Any) -> bool:
    """Whether a field is null, no metric, or a metric that is a number (all of a list's are)."""
    if key in _SCORES:
        return all(_sound_metric("/", score) for score in value or ())
    metric = "/" in key or key in _NUMBERS
    return value is None or not metric or finite_or_none(value) is not None


def _no_number(text: str) -> NoReturn:
    """Refuses NaN and Infinity, which are not JSON and which `line` never writes."""
    raise ValueError(text)


_DECODER = json.JSONDecoder(parse_constant=_no_number)  # `json.loads` would make one a line


def line(row: dict[str, Any]) -> str:
    """One line of strict JSON; a number that is not finite (a blown-up loss) becomes null."""
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
