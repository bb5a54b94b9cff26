"""Small pieces of HTML. Everything from a run passes through `text`."""

from __future__ import annotations

import html
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

MAX_TEXT = 3000
"""How many characters of a program, an answer or a setting are shown."""


def cut(value: Any) -> str:
    """`value` as encodable text, cut at MAX_TEXT; not yet HTML."""
    plain = str(value)
    more = f" ... ({len(plain) - MAX_TEXT:,} more characters)" if len(plain) > MAX_TEXT else ""
    # Lone surrogates cannot be encoded, and some parsers stop at NUL.
    plain = plain[:MAX_TEXT].replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return plain + more


def text(value: Any) -> str:
    """`value` as HTML, safe in elements and quoted attributes, cut at MAX_TEXT."""
    return html.escape(cut(value), quote=True)


def paragraphs(sentences: Sequence[str]) -> str:
    """One paragraph per sentence."""
    return "".join(f"<p>{text(sentence)}</p>" for sentence in sentences)


def empty(words: str) -> str:
    """A message in place of a figure or table without data."""
    return f'<p class="empty">{text(words)}</p>'


def row(head: str, cells: Sequence[str], style: str = "") -> str:
    """A table row of ready HTML: a head, then cells of the class `style`."""
    mark = f' class="{style}"' if style else ""
    return (
        f'<tr><th scope="row">{head}</th>{"".join(f"<td{mark}>{cell}</td>" for cell in cells)}</tr>'
    )


def table(heads: Sequence[str], rows: Sequence[str], style: str = "", label: str = "") -> str:
    """A table of ready rows; `style` is the class of all column heads but the first.

    The frame scrolls sideways and can be focused, so that keys scroll it too.
    """
    head = "".join(
        f'<th scope="col" class="{style if i else ""}">{text(name)}</th>'
        for i, name in enumerate(heads)
    )
    named = text(label or heads[0])
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{named}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def settings(config: str, environment: Record) -> str:
    """The configuration as written, and the environment of the run."""
    rows = [row(text(key), [text(_plain(value))]) for key, value in environment.items()]
    where = table(["environment", ""], rows) if rows else ""
    return f'{where}<h3>config.yaml</h3><pre class="config">{text(config)}</pre>'


def _plain(value: Any) -> str:
    """A value as text: a list as a shell command, a mapping as packages with versions."""
    if isinstance(value, list):
        return shlex.join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {version}" for name, version in value.items())
    return str(value)
