"""Python programs as HTML with their syntax coloured; whatever they hold stays text."""

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


def highlighted(source: str) -> str:
    """`source` as HTML: keywords, built-ins, strings, numbers and comments in spans with classes.

    The text is that of `source`, escaped; if it is not Python, only the colours are wrong.
    """
    parts: list[str] = []
    end = 0
    for match in _TOKEN.finditer(source):
        parts.append(html.escape(source[end : match.start()], quote=True))
        text = html.escape(match.group(), quote=True)
        style = _class(match)
        parts.append(f'<span class="{style}">{text}</span>' if style else text)
        end = match.end()
    parts.append(html.escape(source[end:], quote=True))
    return "".join(parts)


def _class(match: re.Match[str]) -> str:
    kind, word = match.lastgroup, match.group()
    if kind == "word":
        return "k" if keyword.iskeyword(word) else "b" if word in _BUILTIN else ""
    return {"comment": "c", "string": "s", "number": "n"}[str(kind)]
