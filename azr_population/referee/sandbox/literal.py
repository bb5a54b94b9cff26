"""Python literals as data: read, write and compare them without evaluating anything.

The reader is a scanner of its own: one match for each of the tokens that come by the thousand,
and functions for the rest. `ast.literal_eval` runs the whole Python parser, whose memory and C
stack a hostile text can exhaust, so it is given single tokens only; this reader's work is linear in
a bounded text and its depth is bounded, so the trainer's process may use it on whatever a model
wrote.

What counts as a literal: None, True, False, int, float, complex, str, bytes, and lists, tuples,
sets and dicts of them; the empty set is `set()`. Not literals: names, calls, operators (beyond one
sign and the `a+bj` of a complex number), f-strings, comments, Ellipsis.

When two values are the same (`same`): by value, with these rules.

- A bool equals only a bool: `True` is not `1`.
- int, float and complex compare by value: `2` equals `2.0`, `0.0` equals `-0.0`.
- NaN equals nothing and has no literal, nor has infinity; an output that holds one is no literal.
- A list never equals a tuple, nor str bytes. Dicts and sets ignore order; the rules hold inside.
"""

import ast
import cmath
import keyword
import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

MAX_CHARS = 65536
MAX_DEPTH = 64
MAX_DIGITS = 4300  # as sys.int_info.default_max_str_digits; a trainer may have lifted that one
_INT_LIMIT = 10**MAX_DIGITS
_NUMERIC = (int, float, complex)

_SMALL_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_TOKEN = re.compile(
    r"[ \t\r\n\f]*(?:"
    r"(-?(?:0|[1-9][0-9]{0,17})(?![\w.]))"  # 1: an int
    r"|('(?!'')[^'\\\n\r]*'|\"(?!\"\")[^\"\\\n\r]*\")"  # 2: a string without escapes
    r"|(,)"  # 3
    r"|([\[({])"  # 4
    r"|([\])}])"  # 5
    r"|(:)"  # 6
    r"|(-?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,17}(?![\w.]))"  # 7: a float
    r"|(True|False|None)(?!\w)"  # 8
    r"|(\Z)"  # 9: the end
    r"|)"  # any other: matches nothing, and no group
)
_INT, _STRING, _COMMA, _OPEN, _CLOSE, _COLON, _FLOAT, _CONSTANT, _END = range(1, 10)
_CLOSES = {"[": "]", "(": ")", "{": "}"}
_CONSTANTS = {"None": None, "True": True, "False": False}
_CLOSES_AT_ONCE = re.compile(r"[ \t\r\n\f]*[\])}]")

_BLANK = re.compile(r"[ \t\r\n\f]*")
_INLINE_BLANK = re.compile(r"[ \t\f]*")
_NUMBER = re.compile(
    r"0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+"
    r"|(?:(?:[0-9](?:_?[0-9])*)?\.[0-9](?:_?[0-9])*|[0-9](?:_?[0-9])*\.?)"
    r"(?:[eE][+-]?[0-9](?:_?[0-9])*)?[jJ]?"
)
_QUOTE = re.compile(r"(?:[rR][bB]?|[bB][rR]?|[uU])?(?P<quote>\"\"\"|'''|\"|')")
_REST_OF_STRING = {
    '"': re.compile(r'[^"\\\n\r]*(?:\\(?:\r\n|[\s\S])[^"\\\n\r]*)*"'),
    "'": re.compile(r"[^'\\\n\r]*(?:\\(?:\r\n|[\s\S])[^'\\\n\r]*)*'"),
    '"""': re.compile(r'[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*"""'),
    "'''": re.compile(r"[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*'''"),
}
_KNOWN_ESCAPES = re.compile(r"[^\\]*(?:\\[\\'\"abfnrtvx][^\\]*)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_EMPTY_SET = re.compile(r"set[ \t]*\([ \t]*\)")
_KEYWORD = re.compile(r"([A-Za-z_\x80-\U0010ffff][A-Za-z_0-9\x80-\U0010ffff]*)[ \t\r\n\f]*=(?!=)")
_NOT_FINITE = ("nan", "inf", "infinity")


class NotLiteral(ValueError):
    """The text or value is not a literal."""


class TooLarge(NotLiteral):
    """The text or value is over a bound: characters, digits or depth."""


def parse(text: str, max_chars: int = MAX_CHARS, max_depth: int = MAX_DEPTH) -> object:
    """Read one literal; `1, 2` without parentheses is a tuple, as in Python. Raises NotLiteral, or
    TooLarge where a bound is crossed."""
    text = _bounded(text, max_chars)
    if _SMALL_INT.fullmatch(text):
        return int(text)
    values, comma, _ = _read(text, max_depth, in_call=False)
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
    values, _, names = _read(text, MAX_DEPTH, in_call=True)
    positional = len(values) - len(names)
    if [at for at, _ in names] != list(range(positional, len(values))):
        raise NotLiteral("a positional argument follows a keyword argument")
    named = {name: value for (_, name), value in zip(names, values[positional:], strict=True)}
    if len(named) < len(names):
        raise NotLiteral("an argument is given twice")
    return tuple(values[:positional]), named


def _read(
    text: str, max_depth: int, in_call: bool
) -> tuple[list[object], bool, list[tuple[int, str]]]:
    """The values in `text`, separated by commas; whether there was a comma; in a call also the
    names of keyword arguments, each with its value's place among the values."""
    outer: list[tuple[list[object], str, bool, int]] = []  # the brackets around these
    values: list[object] = []
    names: list[tuple[int, str]] = []
    close, comma, colons = "", False, 0
    ready = True  # for a value: nothing, a comma or a colon stands before
    before = 0  # the kind of the token before
    lines = not in_call and ("\n" in text or "\r" in text)  # which may break inside brackets only
    value: object
    next_token = _TOKEN.scanner(text).match  # type: ignore[attr-defined]
    while True:
        token = next_token()
        kind = token.lastindex
        if lines and not close and _breaks(token):
            raise NotLiteral(f"a line ends at {token.start()}")
        if kind == _COMMA:
            if ready or (colons and len(values) != 2 * colons):
                raise _unexpected(text, token.start(kind))
            ready = comma = True
            before = kind
            continue
        if kind == _INT:
            value = int(token[1])
        elif kind == _STRING:
            value = token[2][1:-1]
        elif kind == _OPEN:
            if not ready:
                raise _unexpected(text, token.start(kind))
            inside = len(outer) + 1 + in_call
            if inside > max_depth and not _CLOSES_AT_ONCE.match(text, token.end()):
                raise TooLarge(f"nested deeper than {max_depth}")
            outer.append((values, close, comma, colons))
            values, close, comma, colons = [], _CLOSES[token[4]], False, 0
            before = kind
            continue
        elif kind == _CLOSE:
            if token[5] != close or (ready and values and not comma):
                raise _unexpected(text, token.start(kind))
            value = _container(values, close, comma, colons, ready)
            values, close, comma, colons = outer.pop()
            ready = True
        elif kind == _COLON:
            if ready or close != "}" or len(values) != 2 * colons + 1:
                raise _unexpected(text, token.start(kind))
            colons += 1
            ready = True
            before = kind
            continue
        elif kind == _FLOAT:
            value = float(token[7])
        elif kind == _CONSTANT:
            value = _CONSTANTS[token[8]]
        elif kind == _END:
            if close or (names and names[-1][0] == len(values)) or (ready and values and not comma):
                raise NotLiteral("unexpected end")
            return values, comma, names
        else:
            at = token.end()
            word = _KEYWORD.match(text, at) if in_call and not close and ready else None
            if word:
                names.append((len(values), _parameter(word[1])))
                next_token = _TOKEN.scanner(text, word.end()).match  # type: ignore[attr-defined]
                continue
            if text[at] in "+-" and before in (_INT, _FLOAT):
                imaginary, end = _signed(text, at, bool(close) or in_call)
                if type(imaginary) is not complex:
                    raise NotLiteral(f"an operator at {at}")
                value, ready, before = values.pop() + imaginary, True, 0  # type: ignore[operator]
            else:
                value, kind, end = _rare(text, at, bool(close) or in_call)
            next_token = _TOKEN.scanner(text, end).match  # type: ignore[attr-defined]
        if not ready:
            if not kind == before == _STRING:
                raise NotLiteral(f"a comma is missing at {token.start()}")
            if type(value) is not type(values[-1]):
                raise NotLiteral("str and bytes side by side")
            value = values.pop() + value  # type: ignore[operator]
        values.append(value)
        ready = False
        before = kind


def _breaks(token: re.Match[str]) -> bool:
    """Whether a line ends in the blanks before a token."""
    blanks = token.group().partition((token[token.lastindex] if token.lastindex else "") or "\0")[0]
    return "\n" in blanks or "\r" in blanks


def _unexpected(text: str, at: int) -> NotLiteral:
    return NotLiteral(f"unexpected {text[at]!r} at {at}" if at < len(text) else "unexpected end")


def _container(values: list[object], close: str, comma: bool, colons: int, ready: bool) -> object:
    """What the brackets that have just closed hold."""
    if close == "]":
        return values
    if close == ")":
        return tuple(values) if comma or not values else values[0]
    try:
        if colons:
            if len(values) != 2 * colons:  # `{1: 2, 3}`, `{1: 2, 3: }`
                raise NotLiteral("a dict with a key and no value")
            return dict(zip(values[::2], values[1::2], strict=True))
        return set(values) if values else {}
    except TypeError as error:  # unhashable
        raise NotLiteral(str(error)) from None


def _rare(text: str, at: int, inside: bool) -> tuple[object, int | None, int]:
    """A value that `_TOKEN` does not know, its kind, and where it ends."""
    char = text[at]
    if char in "+-.0123456789":
        value, end = _signed(text, at, inside)
        return value, None if type(value) is complex else _FLOAT, end
    opening = _QUOTE.match(text, at)
    if opening:
        closing = _REST_OF_STRING[opening["quote"]].match(text, opening.end())
        if closing is None:
            raise NotLiteral(f"the string at {at} does not end")
        return _token(text[at : closing.end()]), _STRING, closing.end()
    empty_set = _EMPTY_SET.match(text, at)
    if empty_set:
        return set(), None, empty_set.end()
    name = _NAME.match(text, at)
    if name and name[0].lower() in _NOT_FINITE:
        raise NotLiteral(f"{name[0]} is not finite")
    raise _unexpected(text, at)


def _signed(text: str, at: int, inside: bool) -> tuple[int | float | complex, int]:
    """A number with at most one sign, and where it ends."""
    sign = text[at]
    if sign in "+-":
        at = (_BLANK if inside else _INLINE_BLANK).match(text, at + 1).end()  # type: ignore[union-attr]
    match = _NUMBER.match(text, at)
    if match is None:
        raise NotLiteral(f"no number at {at}")
    following = text[match.end() : match.end() + 1]
    if following and (following in "_." or following.isalnum()):
        raise NotLiteral(f"unexpected {following!r} at {match.end()}")
    value = _number(match[0])
    return -value if sign == "-" else value, match.end()


def _parameter(name: str) -> str:
    """A name as Python reads it: in its normal form, and no word of its grammar."""
    normal = unicodedata.normalize("NFKC", name)
    if not name.isidentifier() or keyword.iskeyword(name) or normal == "__debug__":
        raise NotLiteral(f"{name} is no parameter's name")
    return normal


def _number(text: str) -> int | float | complex:
    digits = text.replace("_", "")
    if digits.isdigit() and len(digits) > MAX_DIGITS:
        raise TooLarge(f"an int of {len(digits)} digits, at most {MAX_DIGITS}")
    value: int | float | complex = _token(text)
    if type(value) is not int and not cmath.isfinite(value):
        raise NotLiteral(f"{text[:20]} is not finite")
    return value


def _token(text: str) -> Any:
    """The value of one string or number, which Python's own parser reads: there is no nesting that
    could exhaust it."""
    try:
        if _KNOWN_ESCAPES.fullmatch(text):
            return ast.literal_eval(text)
        with warnings.catch_warnings():  # an unknown escape keeps its backslash
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError) as error:
        raise NotLiteral(f"{text[:20]}: {error}") from None


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
