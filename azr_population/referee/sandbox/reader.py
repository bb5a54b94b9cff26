"""The scanner under `literal`: from text to values, in time linear in the text."""

import keyword
import re
import unicodedata

MAX_DIGITS = 4300  # as sys.int_info.default_max_str_digits; a trainer may have lifted that one

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
_KEYWORD = re.compile(r"([A-Za-z_\x80-\U0010ffff][A-Za-z_0-9\x80-\U0010ffff]*)[ \t\r\n\f]*=(?!=)")
_CONSTANTS = {"None": None, "True": True, "False": False}


class NotLiteral(ValueError):
    """The text or value is not a literal."""


class TooLarge(NotLiteral):
    """The text or value is over a bound: characters, digits or depth."""


class Reader:
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
            named_one = _KEYWORD.match(self.text, self.at)
            if named_one:
                name = _parameter(named_one.group(1))
                self.at = named_one.end()
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


def _parameter(name: str) -> str:
    """A name as Python reads it: in its normal form, and no word of its grammar."""
    normal = unicodedata.normalize("NFKC", name)
    if not name.isidentifier() or keyword.iskeyword(name) or normal == "__debug__":
        raise NotLiteral(f"{name} is no parameter's name")
    return normal


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
