"""Where a construct of the tail stands in a program."""

import re

NAMES = {"list": "ab", "str": "st"}


def shape(construct):
    """A pattern of the construct's text with any name of its type in place of {x}, any letter of
    {c}; a local (x, y, z) may be of another type."""
    text = re.escape(construct.text).replace(re.escape("{c}"), "'[a-e]'")
    first, *others = text.split(re.escape("{x}"))
    return re.compile(
        f"(?P<x>[{NAMES[construct.takes]}xyz])".join([first, others[0]])
        + "".join(f"(?P=x){part}" for part in others[1:])
    )
