"""Values as short texts, in the sandbox. Python 3.10 and later, standard library only."""

import base64
import collections.abc
import hashlib
import itertools
import json
import marshal
import zlib
from typing import Any

LONGEST_PACKED = 60_000
"""Characters that may leave the sandbox at once."""
LONGEST = 50_000
"""Characters of a value's text; longer ones are hashed."""
HASHED = 40
"""Characters of a text from which on a hash in its place saves room."""
ROOMS = (2_000_000, 400_000, 200_000, 100_000, 50_000, 0)
"""Characters of texts told at once, the first that can leave the sandbox."""
HUGE = 1_000_000
"""Characters from which on a value's text is not even made."""
DEEPEST = 60
HEX_FROM = 10**1000
SCALARS = {int, float, bool, str, bytes, type(None)}
Line = list[str]
"""What is told of a value: its `text`; a hash, as its text is too `long`, comes `later` for want of
room, or is `huge`; or nothing (`opaque`). Then the text or hash. Its type is no part of it: that
would be the solution's to forge, and shows in the text."""


class TooLong(Exception):
    """The text of a value would be longer than `HUGE`."""


class Opaque(Exception):
    """The value equals nothing (NaN), or nothing that could be told from outside."""


def line_of(value: Any) -> Line:
    """What is told of a value outside."""
    try:
        text = written(value)
    except TooLong:
        return ["huge", digest_of(value).hex()[:24]]
    except Exception:
        return ["opaque", ""]
    return shortened(["text", text], LONGEST, "long")


def shortened(line: Line, longest: int, kind: str) -> Line:
    """The line, or one of that kind with a hash in the place of a text that is longer."""
    told, text = line
    return [kind, text_digest(text)] if told == "text" and len(text) > longest else line


def in_room(lines: list[Line], first: int, room: int) -> list[Line]:
    """The lines, from `first` on with as much of their texts as there is room for."""
    told = []
    for position, line in enumerate(lines):
        room -= len(line[1]) if position >= first else 0
        fits = position >= first and room >= 0
        told.append(line if fits else shortened(line, HASHED, "later"))
    return told


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


def packed(content: Any) -> str:
    """JSON, compressed, in characters that anything can carry."""
    text = json.dumps(content, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return base64.b64encode(zlib.compress(text, 1)).decode()


def described(error: BaseException) -> str:
    """A raised exception as a short text."""
    try:
        return f"{type(error).__name__}: {error}"[:200]
    except BaseException:
        return "an exception"
