"""Python literals as data: read, write and compare them without evaluating anything.

The reader is a scanner of its own. `ast.literal_eval` runs the whole Python parser, whose memory
and C stack a hostile text can exhaust; this reader's work is linear in a bounded text and its depth
is bounded, so the trainer's process may use it on whatever a model wrote.

What counts as a literal: None, True, False, int, float, complex, str, bytes, and lists, tuples,
sets and dicts of them; the empty set is `set()`. Not literals: names, calls, operators (beyond one
sign and the `a+bj` of a complex number), f-strings, comments, Ellipsis.

When two values are the same (`same`): by value, with these rules.

- A bool equals only a bool: `True` is not `1`.
- int, float and complex compare by value: `2` equals `2.0`, `0.0` equals `-0.0`.
- NaN equals nothing and has no literal, nor has infinity; an output that holds one is no literal.
- A list never equals a tuple, nor str bytes. Dicts and sets ignore order; the rules hold inside.
"""

import re
from collections.abc import Mapping, Sequence

from . import quick
from .reader import MAX_DIGITS, NotLiteral, Reader, TooLarge

__all__ = [
    "MAX_CHARS",
    "MAX_DEPTH",
    "NotLiteral",
    "TooLarge",
    "parse",
    "parse_arguments",
    "same",
    "write",
    "write_arguments",
]

MAX_CHARS = 65536
MAX_DEPTH = 64
_INT_LIMIT = 10**MAX_DIGITS

_SMALL_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMERIC = (int, float, complex)


def parse(text: str, max_chars: int = MAX_CHARS, max_depth: int = MAX_DEPTH) -> object:
    """Read one literal; `1, 2` without parentheses is a tuple, as in Python. Raises NotLiteral, or
    TooLarge where a bound is crossed."""
    text = _bounded(text, max_chars)
    if _SMALL_INT.fullmatch(text):
        return int(text)
    values, comma = quick.read(text, max_depth - 1) or ((), False)
    if values:
        return tuple(values) if comma else values[0]
    reader = Reader(text, max_depth)
    values, comma = reader.items("", 0)
    if not values:
        raise NotLiteral("empty")
    return tuple(values) if comma else values[0]


def parse_arguments(text: str) -> tuple[tuple[object, ...], dict[str, object]]:
    """Read what stands between the parentheses of a call: `[1], 'a', key=2`, all of it literals.

    Returns the positional and the keyword arguments. Raises as `parse` does.
    """
    text = _bounded(text, MAX_CHARS)
    if _SMALL_INT.fullmatch(text):
        return (int(text),), {}
    quickly = quick.read(text, MAX_DEPTH - 1)
    if quickly is not None:
        return tuple(quickly[0]), {}
    return Reader(text, MAX_DEPTH).arguments()


def _bounded(text: str, max_chars: int) -> str:
    if len(text) > max_chars:
        raise TooLarge(f"{len(text)} characters, at most {max_chars}")
    return text.strip(" \t\r\n\f")


def write(value: object, max_chars: int = MAX_CHARS, max_depth: int = MAX_DEPTH) -> str:
    """Write a value as a literal; `parse(write(v))` is the same as `v`. Sets come sorted by text.
    Raises NotLiteral for a value, at any depth, whose type is not exactly one of the literal types
    (a Counter or an enum member is none) or that is not finite; TooLarge where a bound is
    crossed."""
    room = [max_chars]
    return _write(value, room, max_depth)


def write_arguments(positional: Sequence[object], named: Mapping[str, object]) -> str:
    """What stands between the parentheses of such a call. Raises as `write` does."""
    if not all(name.isidentifier() for name in named):
        raise NotLiteral("a keyword that is no name")
    parts = [write(value) for value in positional]
    return ", ".join([*parts, *(f"{name}={write(value)}" for name, value in named.items())])


def _write(value: object, room: list[int], depth: int) -> str:
    kind = type(value)
    if kind is str or kind is bytes:
        if len(value) > room[0]:  # type: ignore[arg-type]
            raise TooLarge("too many characters")
        text = repr(value)
    elif kind is int:
        if not -_INT_LIMIT < value < _INT_LIMIT:
            raise TooLarge(f"an int of over {MAX_DIGITS} digits")
        text = repr(value)
    elif value is None or kind is bool:
        text = repr(value)
    elif kind is float or kind is complex:
        text = repr(value)
        if "n" in text:  # nan, inf
            raise NotLiteral(f"{text} is not finite")
    else:
        return _write_container(value, room, depth)
    room[0] -= len(text)
    if room[0] < 0:
        raise TooLarge("too many characters")
    return text


def _write_container(value: object, room: list[int], depth: int) -> str:
    kind = type(value)
    if kind is not list and kind is not tuple and kind is not dict and kind is not set:
        raise NotLiteral(f"a value of type {kind.__name__}")
    if depth <= 0:
        raise TooLarge("nested too deeply")
    room[0] -= 2 + 2 * len(value)  # type: ignore[arg-type]
    if room[0] < 0:
        raise TooLarge("too many characters")
    if kind is list and value:
        text = _plain_list(value, room[0])  # type: ignore[arg-type]
        if text:
            room[0] -= len(text) - 2 * len(value)  # type: ignore[arg-type]
            if room[0] < 0:
                raise TooLarge("too many characters")
            return text
    if kind is dict:
        pairs = [
            f"{_write(key, room, depth - 1)}: {_write(item, room, depth - 1)}"
            for key, item in value.items()  # type: ignore[attr-defined]
        ]
        return "{" + ", ".join(pairs) + "}"
    items = [_write(item, room, depth - 1) for item in value]  # type: ignore[attr-defined]
    if kind is list:
        return "[" + ", ".join(items) + "]"
    if kind is tuple:
        return f"({items[0]},)" if len(items) == 1 else "(" + ", ".join(items) + ")"
    return "{" + ", ".join(sorted(items)) + "}" if items else "set()"


def _plain_list(values: list[object], room: int) -> str:
    """A list of small ints, or of short strings, as Python writes it; '' for any other."""
    kinds = set(map(type, values))
    if kinds == {int}:
        small = min(values) > -(10**18) and max(values) < 10**18  # type: ignore[type-var, operator]
        return repr(values) if small else ""
    if kinds == {str} and sum(map(len, values)) <= room:  # type: ignore[arg-type]
        return repr(values)
    return ""


def same(left: object, right: object) -> bool:
    """Whether two values made by `parse` are equal by the rules at the head of this module."""
    kind = type(left)
    if kind is not type(right):
        return kind in _NUMERIC and type(right) in _NUMERIC and left == right
    if kind in (list, tuple):
        return len(left) == len(right) and all(map(same, left, right))  # type: ignore[arg-type, call-overload]
    if kind is dict:
        if len(left) != len(right):  # type: ignore[arg-type]
            return False
        mine = {_key(key): item for key, item in left.items()}  # type: ignore[attr-defined]
        for key, item in right.items():  # type: ignore[attr-defined]
            tagged = _key(key)
            if tagged not in mine or not same(mine[tagged], item):
                return False
        return True
    if kind is set:
        return {_key(item) for item in left} == {_key(item) for item in right}  # type: ignore[attr-defined]
    return left == right


def _key(value: object) -> object:
    """A hashable that equals another's exactly when `same` holds."""
    if type(value) is bool:
        return (bool, value)
    if type(value) is tuple:
        return (tuple, *map(_key, value))
    return value
