"""Python literals as data: read, write and compare them without evaluating anything.

`ast.literal_eval` reads the text, but a hostile text can exhaust the memory and the stack of
Python's parser. So `_check` first bounds the length, the nesting and the alphabet, which makes the
reader safe for model-written text in the trainer's process.

Literals: None, True, False, int, float, complex, str, bytes, and lists, tuples, sets and dicts of
them; the empty set is `set()`. Not literals: names, calls, operators (beyond one sign and the
`a+bj` of a complex number), f-strings, comments, Ellipsis.

Two values are the same (`same`) by these rules:

- A bool equals only a bool: `True` is not `1`.
- int, float and complex compare by value: `2` equals `2.0`, `0.0` equals `-0.0`.
- NaN and infinity have no literal, so an output that contains one is not a literal.
- A list never equals a tuple, nor str bytes. Dicts and sets ignore order; the rules hold inside.
"""

import ast
import cmath
import json
import math
import re
import warnings
from collections.abc import Mapping, Sequence

MAX_CHARS = 65536
MAX_DEPTH = 64
MAX_DIGITS = 4300  # as sys.int_info.default_max_str_digits; a trainer may have lifted that one
_INT_LIMIT = 10**MAX_DIGITS
_NUMERIC = (int, float, complex)
_SCALARS = frozenset((type(None), bool, str, bytes, *_NUMERIC))
_CONTAINERS = frozenset((list, tuple, set, dict))

_STRING = re.compile(
    r"(?:[rR][bB]?|[bB][rR]?|[uU])?(?:"
    r'"""[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*)*"""'
    r"|'''[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*)*'''"
    r'|"(?!"")[^"\\\n\r]*(?:\\(?:\r\n|[\s\S])[^"\\\n\r]*)*"'
    r"|'(?!'')[^'\\\n\r]*(?:\\(?:\r\n|[\s\S])[^'\\\n\r]*)*')"
    r"|['\"][\s\S]*"  # an unterminated string: the parser stops there too
)
_UNSIGNED = (
    r"(?:0[xX][0-9a-fA-F_]+|0[oObB][0-7_]+"
    r"|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?[jJ]?)"
)
_VALUE = re.compile(
    rf"(?:[+-][ \t\r\n\f]*)?{_UNSIGNED}(?:[ \t\r\n\f]*[+-][ \t\r\n\f]*{_UNSIGNED}(?<=[jJ]))?"
    r"|True|False|None|set[ \t]*\([ \t]*\)"
)
_KEYWORD = re.compile(
    r"(?<![A-Za-z_0-9\x80-\U0010ffff])[A-Za-z_\x80-\U0010ffff][A-Za-z_0-9\x80-\U0010ffff]*"
    r"[ \t\r\n\f]*=(?!=)"
)
_STRUCTURE = re.compile(r"[\x00\x01,:()\[\]{} \t\r\n\f]*")
# A number right after a value belongs to an operator; a bracket there is a call or a subscript.
_APPLIED = re.compile(r"\x01[ \t\r\n\f]*\x01|[\x00\x01\])}][ \t\r\n\f]*[\[({]")
_BRACKETS = re.compile(r"[()\[\]{}]")
_DIGITS = re.compile(r"[0-9_]+")
_EXPONENT = re.compile(r"[eE]\+?[0-9]")
_NOT_JSON = re.compile(r"[\\(\n\r]|[eE][+-]?[0-9]|true|false|null|NaN|Infinity")
_WORDS = {"None": None, "True": True, "False": False}


def _finite(digits: str) -> float:
    """The float of a literal; 400 digits are infinity, which is not one."""
    if math.isinf(number := float(digits)):
        raise ValueError(digits[:40])
    return number


_JSON = json.JSONDecoder(parse_float=_finite)


class NotLiteral(ValueError):
    """The text or value is not a literal."""


class TooLarge(NotLiteral):
    """The text or value is over a bound: characters, digits or depth."""


def parse(text: str) -> object:
    """Reads one literal; `1, 2` without parentheses is a tuple, as in Python. Raises NotLiteral;
    TooLarge: a bound is exceeded."""
    text = _bounded(text)
    if values := _as_json(text):
        return values[0] if len(values) == 1 else tuple(values)
    _check(text)
    return _evaluated(_tree(text), text)


def parse_arguments(text: str) -> tuple[tuple[object, ...], dict[str, object]]:
    """Reads an argument list of literals, as between the parentheses of a call: `[1], 'a', key=2`.

    Returns the positional and the keyword arguments. Raises as `parse` does.
    """
    text = _bounded(text)
    if values := _as_json(text):
        return tuple(values), {}
    _check(text, in_call=True)
    call = _tree(f"f({text})")
    assert isinstance(call, ast.Call)  # the brackets in the text are balanced
    named = {str(keyword.arg): _evaluated(keyword.value, text) for keyword in call.keywords}
    if len(named) < len(call.keywords) or "__debug__" in named:
        raise NotLiteral("an argument's name is repeated or not a name")
    return tuple(_evaluated(argument, text) for argument in call.args), named


def _bounded(text: str) -> str:
    if len(text) > MAX_CHARS:
        raise TooLarge(f"{len(text)} characters, at most {MAX_CHARS}")
    return text.strip(" \t\r\n\f")


def _as_json(text: str) -> list[object]:
    """The values of a text that has the same meaning in JSON (apart from quotes); six times as fast
    as Python's parser. Empty for any other text."""
    if text in _WORDS:
        return [_WORDS[text]]
    if ("'" in text and '"' in text) or _NOT_JSON.search(text):
        return []
    if text.count("[") + text.count("{") > MAX_DEPTH:
        return []
    try:
        swapped = text.replace("'", '"')
        values: list[object] = _JSON.decode(f"[{swapped}]")
    except (ValueError, RecursionError):
        return []
    return values


def _check(text: str, in_call: bool = False) -> None:
    """Raises NotLiteral for text that Python's parser must not get: without strings, numbers and
    constants only brackets, commas and colons may be left, with limited nesting."""
    if "\0" in text or "\1" in text:
        raise NotLiteral("a control character")
    bare = _STRING.sub("\0", text)
    if len(bare) > MAX_DIGITS and max(map(len, _DIGITS.findall(bare)), default=0) > MAX_DIGITS:
        raise TooLarge(f"an int of over {MAX_DIGITS} digits")
    structure = _VALUE.sub("\1", _KEYWORD.sub("", bare) if in_call else bare)
    if not _STRUCTURE.fullmatch(structure) or _APPLIED.search(structure):
        raise NotLiteral(f"not a literal: {text[:40]}")
    depth = 0
    for bracket in _BRACKETS.findall(structure):
        depth += 1 if bracket in "([{" else -1
        if depth < 0:
            raise NotLiteral("an unmatched closing bracket")
        if depth > MAX_DEPTH:
            raise TooLarge(f"nested deeper than {MAX_DEPTH}")


def _tree(text: str) -> ast.expr:
    try:
        if "\\" not in text:
            return ast.parse(text, mode="eval").body
        with warnings.catch_warnings():  # an unknown escape keeps its backslash
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, MemoryError) as error:
        raise NotLiteral(f"{text[:40]}: {error}") from None


def _evaluated(node: ast.expr, text: str) -> object:
    try:
        value: object = ast.literal_eval(node)
    # A dict's key without a value; unhashable; an int too large for the complex it is added to.
    except (ValueError, TypeError, OverflowError) as error:
        raise NotLiteral(str(error)) from None
    may_overflow = len(text) > 300 or _EXPONENT.search(text)
    for part in ast.walk(node) if may_overflow else ():
        number = part.value if isinstance(part, ast.Constant) else 0
        if isinstance(number, (float, complex)) and not cmath.isfinite(number):
            raise NotLiteral(f"{number} is not finite")
    return value


def write(value: object, max_chars: int = MAX_CHARS) -> str:
    """Writes a value as a literal; `parse(write(v))` is the same as `v`. Sets are sorted by text.
    Raises NotLiteral: a value at any depth is not finite, or its type is not exactly a literal type
    (a Counter or an enum member is not); TooLarge: a bound is exceeded."""
    return _checked(_write(value, [max_chars], MAX_DEPTH), max_chars)


def write_arguments(positional: Sequence[object], named: Mapping[str, object]) -> str:
    """Writes an argument list. Raises as `write` does."""
    if not all(name.isidentifier() for name in named):
        raise NotLiteral("a keyword that is not a name")
    parts = [write(value) for value in positional]
    parts += [f"{name}={write(value)}" for name, value in named.items()]
    return _checked(", ".join(parts), MAX_CHARS)


def _checked(text: str, most: int) -> str:
    if len(text) > most:
        raise TooLarge(f"{len(text)} characters, at most {most}")
    return text


def _write(value: object, room: list[int], depth: int) -> str:
    """`room[0]` is about the number of characters left, for each container up to two too few: it
    bounds the memory."""
    kind = type(value)
    if kind in _SCALARS:
        if isinstance(value, (str, bytes)) and len(value) > room[0]:
            raise TooLarge("too many characters")
        if isinstance(value, int) and not -_INT_LIMIT < value < _INT_LIMIT:
            raise TooLarge(f"an int of over {MAX_DIGITS} digits")
        text = repr(value)
        if isinstance(value, (float, complex)) and "n" in text:  # nan, inf
            raise NotLiteral(f"{text} is not finite")
        room[0] -= len(text)
    elif kind in _CONTAINERS:
        if depth <= 0:
            raise TooLarge("nested too deeply")
        room[0] -= 2 + 2 * len(value)  # type: ignore[arg-type]
        text = _write_container(value, room, depth - 1) if room[0] >= 0 else ""
    else:
        raise NotLiteral(f"a value of type {kind.__name__}")
    if room[0] < 0:
        raise TooLarge("too many characters")
    return text


def _write_container(values: object, room: list[int], depth: int) -> str:
    if isinstance(values, dict):
        pairs = (
            f"{_write(key, room, depth)}: {_write(value, room, depth)}"
            for key, value in values.items()
        )
        return f"{{{', '.join(pairs)}}}"
    items = [_write(value, room, depth) for value in values]  # type: ignore[attr-defined]
    if isinstance(values, list):
        return f"[{', '.join(items)}]"
    if isinstance(values, tuple):
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    return f"{{{', '.join(sorted(items))}}}" if items else "set()"


def canonical_arguments(text: str) -> str | None:
    """An argument list of literals in the form of `write_arguments`; None for any other."""
    try:
        return write_arguments(*parse_arguments(text))
    except NotLiteral:
        return None


def same(left: object, right: object) -> bool:
    """Whether two values from `parse` are equal by the rules in this module's docstring."""
    return _key(left) == _key(right)


def _key(value: object) -> object:
    """A hashable key; two are equal exactly if their values are the same."""
    kind = type(value)
    if isinstance(value, dict):
        return kind, frozenset((_key(key), _key(item)) for key, item in value.items())
    if isinstance(value, set):
        return kind, frozenset(map(_key, value))
    if isinstance(value, (list, tuple)):
        return kind, *map(_key, value)
    return (kind, value) if kind is bool else value
