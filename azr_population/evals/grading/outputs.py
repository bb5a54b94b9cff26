"""What came out of a solution, and whether it is what was to come out.

`Output` mirrors `sandboxed.values.Line`. Its text was written by the solution's side of the wall,
so it is compared as text, or read as a literal, and never evaluated.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from azr_population.evals.grading.sandboxed.values import text_digest
from azr_population.referee.sandbox import literal

_MAX_BYTES = 8 << 20


class Forged(ValueError):
    """What came back is not what our side writes."""


@dataclass(frozen=True)
class Output:
    """One value: its text (`text`), or a hash of it (`long`, `later`, `huge`)."""

    kind: str
    text: str

    def same_text(self, other: Output) -> bool:
        """Whether both are the same value, by their texts or by the hashes of these."""
        if "opaque" in (self.kind, other.kind):
            return False
        if self.kind == other.kind == "text":
            return self.text == other.text
        return self._digest == other._digest

    @cached_property
    def value(self) -> Any:
        """The value itself; raises `literal.NotLiteral` where all that is known is a hash."""
        if self.kind != "text":
            raise literal.NotLiteral(f"a value that is {self.kind}")
        return literal.parse(self.text)

    @property
    def _digest(self) -> str:
        if self.kind == "text":
            return text_digest(self.text)
        return f"huge {self.text}" if self.kind == "huge" else self.text


def unpack(text: str) -> Any:
    """The inverse of `sandboxed.values.packed`, for text that a solution may have forged. Raises
    `Forged`."""
    try:
        inflater = zlib.decompressobj()
        raw = inflater.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
        if inflater.unconsumed_tail:
            raise ValueError("too long")
        return json.loads(raw)
    except (ValueError, zlib.error, RecursionError) as error:
        raise Forged(str(error)) from error


def outputs_and_error(text: str) -> tuple[list[Output], str]:
    """What `sandboxed.functions.call_all` told: outputs, and what was raised. Raises `Forged`."""
    record = unpack(text)
    if not isinstance(record, dict) or record.keys() != {"lines", "error"}:
        raise Forged("no record")
    return outputs_of(record["lines"]), str(record["error"])


def outputs_of(lines: Any) -> list[Output]:
    """The outputs in a list of lines. Raises `Forged`."""
    if not isinstance(lines, list):
        raise Forged("no list of lines")
    return [output_of(line) for line in lines]


def output_of(line: Any) -> Output:
    """The output in a line. Raises `Forged`."""
    if not isinstance(line, list) or len(line) != 2 or not all(type(part) is str for part in line):
        raise Forged("no line")
    return Output(*line)
