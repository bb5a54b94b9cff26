"""Python programs as HTML with their words marked, for reading; whatever they hold, it is text."""

from __future__ import annotations

import builtins
import html
import keyword
import re

_TOKEN = re.compile(
    r"(?P<comment>#[^\n]*)"
    r"|(?P<string>[rbfRBF]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"))"
    r"|(?P<number>\b\d[\w.]*)"
    r"|(?P<word>[^\W\d]\w*)",
    re.DOTALL,
)
_BUILTIN = frozenset(name for name in dir(builtins) if name.islower())


def marked(source: str) -> str:
    """`source` as HTML: keywords, built-ins, strings, numbers and comments in spans with classes.

    The text inside is that of `source`, escaped; only its colours depend on its being Python.
    """
    parts: list[str] = []
    end = 0
    for found in _TOKEN.finditer(source):
        parts.append(html.escape(source[end : found.start()], quote=True))
        text = html.escape(found.group(), quote=True)
        style = _class(found)
        parts.append(f'<span class="{style}">{text}</span>' if style else text)
        end = found.end()
    parts.append(html.escape(source[end:], quote=True))
    return "".join(parts)


def _class(found: re.Match[str]) -> str:
    kind, word = found.lastgroup, found.group()
    if kind == "word":
        return "k" if keyword.iskeyword(word) else "b" if word in _BUILTIN else ""
    return {"comment": "c", "string": "s", "number": "n"}[str(kind)]
