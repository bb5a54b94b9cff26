"""A quick reader for the literals that come by the thousand: it reads them, or leaves them alone.

It knows small ints, simple floats, strings without prefix and escape, None, True, False, and
lists, tuples, dicts and sets of them with single blanks between. Whatever else it meets, it returns
None and says nothing about the text; `reader.Reader` then decides. What it does read, it reads as
`Reader` does (a test compares the two), several times as fast: one match per token.
"""

import re

_TOKEN = re.compile(
    r" *(?:"
    r"(-?(?:0|[1-9][0-9]{0,17})(?![\w.]))"  # 1: an int
    r"|('[^'\\\n\r]*'|\"[^\"\\\n\r]*\")"  # 2: a string; no escape, so it is its own text
    r"|(,)"  # 3
    r"|([\[({])"  # 4
    r"|([\])}])"  # 5
    r"|(:)"  # 6
    r"|(-?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,17}(?![\w.]))"  # 7: a float
    r"|(True|False|None)(?!\w)"  # 8
    r"|(\Z)"  # 9: the end
    r"|)"  # what it does not know: matches nothing, and no group
)
_INT, _STRING, _COMMA, _OPEN, _CLOSE, _COLON, _FLOAT, _CONSTANT, _END = range(1, 10)
_CLOSES = {"[": "]", "(": ")", "{": "}"}
_CONSTANTS = {"None": None, "True": True, "False": False}


def read(text: str, max_depth: int) -> tuple[list[object], bool] | None:
    """The values in `text`, separated by commas, and whether there was a comma; or None.

    `max_depth`: how deep brackets may nest before it declines.
    """
    outer: list[tuple[list[object], str, bool, int]] = []
    values: list[object] = []
    close, comma, colons = "", False, 0
    ready = True  # for a value: nothing, a comma or a colon stands before
    value: object
    next_token = _TOKEN.scanner(text).match  # type: ignore[attr-defined]
    while True:
        token = next_token()
        kind = token.lastindex
        if kind == _COMMA:
            if ready or (colons and len(values) != 2 * colons):
                return None
            ready = comma = True
            continue
        if kind == _INT:
            value = int(token[1])
        elif kind == _STRING:
            value = token[2][1:-1]
        elif kind == _OPEN:
            if not ready or len(outer) >= max_depth:
                return None
            outer.append((values, close, comma, colons))
            values, close, comma, colons = [], _CLOSES[token[4]], False, 0
            continue
        elif kind == _CLOSE:
            if token[5] != close or (ready and values and not comma):
                return None
            made = _container(values, close, comma, colons)
            if made is None:
                return None
            values, close, comma, colons = outer.pop()
            values.append(made[0])
            ready = False
            continue
        elif kind == _COLON:
            if ready or close != "}" or len(values) != 2 * colons + 1:
                return None
            colons += 1
            ready = True
            continue
        elif kind == _FLOAT:
            value = float(token[7])
        elif kind == _CONSTANT:
            value = _CONSTANTS[token[8]]
        elif kind == _END and not close:
            return values, comma
        else:
            return None
        if not ready:
            return None
        values.append(value)
        ready = False


def _container(values: list[object], close: str, comma: bool, colons: int) -> tuple[object] | None:
    """What the brackets that have just closed hold, in a tuple of one; None to decline."""
    if close == "]":
        return (values,)
    if close == ")":
        return (tuple(values) if comma or not values else values[0],)
    try:
        if colons:
            if len(values) != 2 * colons:  # `{1: 2, 3}`, `{1: 2, 3: }`
                return None
            return (dict(zip(values[::2], values[1::2], strict=True)),)
        return (set(values) if values else {},)
    except TypeError:  # unhashable
        return None
