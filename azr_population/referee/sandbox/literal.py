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

from __future__ import annotations

import re

MAX_CHARS = 65536
MAX_DEPTH = 64
MAX_DIGITS = 4300  # as sys.int_info.default_max_str_digits; a trainer may have lifted that one
_INT_LIMIT = 10**MAX_DIGITS

_BLANK = re.compile(r"[ \t\r\n\f]*")
_INLINE_BLANK = re.compile(r"[ \t\f]*")
_NUMBER = re.compile(
    r"0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+"
    r"|(?:(?:[0-9](?:_?[0-9])*)?\.[0-9](?:_?[0-9])*|[0-9](?:_?[0-9])*\.?)"
    r"(?:[eE][+-]?[0-9](?:_?[0-9])*)?[jJ]?"
)
_QUOTE = re.compile(r"(?P<prefix>[rR][bB]?|[bB][rR]?|[uU])?(?P<quote>\"\"\"|'''|\"|')")
_REST_OF_STRING = {
    '"': re.compile(r'[^"\\\n\r]*(?:\\(?:\r\n|[\s\S])[^"\\\n\r]*)*"'),
    "'": re.compile(r"[^'\\\n\r]*(?:\\(?:\r\n|[\s\S])[^'\\\n\r]*)*'"),
    '"""': re.compile(r'[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*"""'),
    "'''": re.compile(r"[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*'''"),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_EMPTY_SET = re.compile(r"set[ \t]*\([ \t]*\)")
_KEYWORD = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)[ \t\r\n\f]*=(?!=)")
_SMALL_INT = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_CONSTANTS = {"None": None, "True": True, "False": False}
_NUMERIC = (int, float, complex)


class NotLiteral(ValueError):
    """The text or value is not a literal."""


class TooLarge(NotLiteral):
    """The text or value is over a bound: characters, digits or depth."""


def parse(text: str, max_chars: int = MAX_CHARS, max_depth: int = MAX_DEPTH) -> object:
    """Read one literal; `1, 2` without parentheses is a tuple, as in Python.

    Raises NotLiteral, or TooLarge where a bound is crossed.
    """
    text = _bounded(text, max_chars)
    if _SMALL_INT.fullmatch(text):
        return int(text)
    reader = _Reader(text, max_depth)
    values, comma = reader.items("", 0)
    if not values:
        raise NotLiteral("empty")
    return tuple(values) if comma else values[0]


def parse_arguments(
    text: str, max_chars: int = MAX_CHARS, max_depth: int = MAX_DEPTH
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Read what stands between the parentheses of a call: `[1], 'a', key=2`, all of it literals.

    Returns the positional and the keyword arguments. Raises as `parse` does.
    """
    text = _bounded(text, max_chars)
    if _SMALL_INT.fullmatch(text):
        return (int(text),), {}
    return _Reader(text, max_depth).arguments()


def _bounded(text: str, max_chars: int) -> str:
    if len(text) > max_chars:
        raise TooLarge(f"{len(text)} characters, at most {max_chars}")
    return text.strip(" \t\r\n\f")


class _Reader:
    def __init__(self, text: str, max_depth: int) -> None:
        self.text = text
        self.at = 0
        self.max_depth = max_depth

    def peek(self, inside: bool) -> str:
        """Skip blanks (newlines only inside brackets) and return the next character or ''."""
        self.at = (_BLANK if inside else _INLINE_BLANK).match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def items(self, close: str, depth: int) -> tuple[list[object], bool]:
        """Read values up to `close` ('' is the end); also: was there a comma."""
        values: list[object] = []
        inside, comma, comma_last = depth > 0, False, True
        while True:
            char = self.peek(inside)
            if char == close:
                self.at += 1
                return values, comma
            if not comma_last:
                raise NotLiteral(f"a comma is missing at {self.at}")
            values.append(self.value(depth))
            comma_last = self.peek(inside) == ","
            if comma_last:
                self.at += 1
                comma = True

    def arguments(self) -> tuple[tuple[object, ...], dict[str, object]]:
        values: list[object] = []
        named: dict[str, object] = {}
        while self.peek(True):
            keyword = _KEYWORD.match(self.text, self.at)
            if keyword:
                name = keyword.group(1)
                self.at = keyword.end()
                if name in named:
                    raise NotLiteral(f"argument {name} is given twice")
                named[name] = self.value(1)
            elif named:
                raise NotLiteral("a positional argument follows a keyword argument")
            else:
                values.append(self.value(1))
            char = self.peek(True)
            if char not in ("", ","):
                raise NotLiteral(f"unexpected {char!r} at {self.at}")
            self.at += 1
        return tuple(values), named

    def value(self, depth: int) -> object:
        if depth > self.max_depth:
            raise TooLarge(f"nested deeper than {self.max_depth}")
        char = self.peek(depth > 0)
        if char == "[":
            self.at += 1
            return self.items("]", depth + 1)[0]
        if char == "(":
            self.at += 1
            values, comma = self.items(")", depth + 1)
            return tuple(values) if comma or not values else values[0]
        if char == "{":
            self.at += 1
            return self.braces(depth + 1)
        if char and char in "+-.0123456789":
            return self.number(depth)
        if _QUOTE.match(self.text, self.at):
            return self.strings(depth)
        name = _NAME.match(self.text, self.at)
        if name:
            empty_set = _EMPTY_SET.match(self.text, self.at)
            if empty_set:
                self.at = empty_set.end()
                return set()
            if name.group() in _CONSTANTS:
                self.at = name.end()
                return _CONSTANTS[name.group()]
        raise NotLiteral(f"unexpected {char!r} at {self.at}" if char else "unexpected end")

    def braces(self, depth: int) -> object:
        if self.peek(True) == "}":
            self.at += 1
            return {}
        first = self.value(depth)
        try:
            if self.peek(True) != ":":
                if self.peek(True) == ",":
                    self.at += 1
                elif self.peek(True) != "}":
                    raise NotLiteral(f"a comma is missing at {self.at}")
                return {first, *self.items("}", depth)[0]}
            result: dict[object, object] = {}
            while True:
                if self.peek(True) != ":":
                    raise NotLiteral(f"a colon is missing at {self.at}")
                self.at += 1
                result[first] = self.value(depth)
                char = self.peek(True)
                if char == ",":
                    self.at += 1
                    char = self.peek(True)
                elif char != "}":
                    raise NotLiteral(f"a comma is missing at {self.at}")
                if char == "}":
                    self.at += 1
                    return result
                first = self.value(depth)
        except TypeError as error:  # unhashable
            raise NotLiteral(str(error)) from None

    def number(self, depth: int) -> object:
        value = self.signed(depth > 0)
        if type(value) is complex:
            return value
        mark = self.at
        if self.peek(depth > 0) in ("+", "-") and self.text[self.at : self.at + 1]:
            imaginary = self.signed(depth > 0)
            if type(imaginary) is complex:
                return value + imaginary  # type: ignore[operator]
            raise NotLiteral(f"an operator at {mark}")
        return value

    def signed(self, inside: bool) -> object:
        sign = self.text[self.at]
        if sign in "+-":
            self.at += 1
            self.peek(inside)
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise NotLiteral(f"no number at {self.at}")
        self.at = match.end()
        following = self.text[self.at : self.at + 1]
        if following and (following in "_." or following.isalnum()):
            raise NotLiteral(f"unexpected {following!r} at {self.at}")
        value = _number(match.group())
        return -value if sign == "-" else value

    def strings(self, depth: int) -> object:
        parts: list[object] = []
        while True:
            opening = _QUOTE.match(self.text, self.at)
            if opening is None:
                break
            quote = opening.group("quote")
            closing = _REST_OF_STRING[quote].match(self.text, opening.end())
            if closing is None:
                raise NotLiteral(f"the string at {self.at} does not end")
            body = self.text[opening.end() : closing.end() - len(quote)]
            self.at = closing.end()
            parts.append(_string((opening.group("prefix") or "").lower(), body))
            self.peek(depth > 0)
        if len({type(part) for part in parts}) > 1:
            raise NotLiteral("str and bytes side by side")
        return parts[0] if len(parts) == 1 else type(parts[0])().join(parts)  # type: ignore[attr-defined]


def _number(text: str) -> int | float | complex:
    plain = text.replace("_", "")
    if plain[-1] in "jJ" and plain[:2].lower() != "0x":
        return complex(0.0, float(plain[:-1]))
    if plain[:2].lower() in ("0x", "0o", "0b"):
        return int(plain, 0)
    if not plain.isdigit():
        return float(plain)
    if len(plain) > MAX_DIGITS:
        raise TooLarge(f"an int of {len(plain)} digits, at most {MAX_DIGITS}")
    if plain[0] == "0" and plain.strip("0"):
        raise NotLiteral("an int with leading zeros")
    return int(plain)


_SIMPLE_ESCAPES = {
    "\\\\": "\\", "\\'": "'", '\\"': '"', "\\n": "\n", "\\t": "\t", "\\r": "\r",
    "\\a": "\a", "\\b": "\b", "\\f": "\f", "\\v": "\v", "\\\n": "", "\\\r\n": "", "\\\r": "",
}  # fmt: skip
_LONG_ESCAPE = re.compile(
    r"\\(?:\r\n|[0-7]{1,3}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}"
    r"|N\{[A-Za-z0-9 -]{1,90}\}|[\s\S])"
)


def _string(prefix: str, body: str) -> str | bytes:
    body = body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body
    binary = "b" in prefix
    if binary and not body.isascii():
        raise NotLiteral("bytes hold ASCII characters only")
    if "r" not in prefix and "\\" in body:
        body = _LONG_ESCAPE.sub(_unescape_bytes if binary else _unescape, body)
    return body.encode("latin-1") if binary else body


def _unescape(match: re.Match[str]) -> str:
    text = match.group()
    if text in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[text]
    kind = text[1]
    if kind in "01234567":
        return chr(int(text[1:], 8))
    if kind == "N" and len(text) > 2:
        import unicodedata

        try:
            return unicodedata.lookup(text[3:-1])
        except KeyError:
            raise NotLiteral(f"no character is named {text[3:-1]}") from None
    if kind in "xuU" and len(text) > 2 and int(text[2:], 16) < 0x110000:
        return chr(int(text[2:], 16))
    if kind in "xuUN":
        raise NotLiteral("a broken escape")
    return text  # an unknown escape keeps its backslash, as in Python


def _unescape_bytes(match: re.Match[str]) -> str:
    text = match.group()
    if text[1] in "uUN":
        return text
    unescaped = _unescape(match)
    return chr(ord(unescaped) & 0xFF) if text[1] in "01234567" else unescaped


def write(value: object, max_chars: int = MAX_CHARS, max_depth: int = MAX_DEPTH) -> str:
    """Write a value as a literal; `parse(write(v))` is the same as `v`. Sets come sorted by text.

    Raises NotLiteral for a value, at any depth, whose type is not exactly one of the literal types
    (a Counter or an enum member is none) or that is not finite; TooLarge where a bound is crossed.
    """
    room = [max_chars]
    return _write(value, room, max_depth)


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
