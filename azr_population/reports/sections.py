"""Plain pieces of HTML. Everything from a run passes through `text`."""

from __future__ import annotations

import html
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

MAX_TEXT = 3000
"""Characters of a program, an answer or a setting that are shown."""


def cut(value: Any) -> str:
    """`value` as text that can be encoded, cut at MAX_TEXT; not yet HTML."""
    plain = str(value)
    more = f" ... ({len(plain) - MAX_TEXT:,} more characters)" if len(plain) > MAX_TEXT else ""
    # Lone surrogates cannot be encoded, and NUL would end some parsers' idea of the text.
    plain = plain[:MAX_TEXT].replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return plain + more


def text(value: Any) -> str:
    """`value` as HTML text that is safe in elements and quoted attributes, cut at MAX_TEXT."""
    return html.escape(cut(value), quote=True)


def paragraphs(sentences: Sequence[str]) -> str:
    """One paragraph per sentence."""
    return "".join(f"<p>{text(sentence)}</p>" for sentence in sentences)


def empty(words: str) -> str:
    """What stands where there is nothing to show."""
    return f'<p class="empty">{text(words)}</p>'


def row(head: str, cells: Sequence[str], style: str = "") -> str:
    """A table row of ready HTML: its head, then cells with the class `style`."""
    mark = f' class="{style}"' if style else ""
    return (
        f'<tr><th scope="row">{head}</th>{"".join(f"<td{mark}>{cell}</td>" for cell in cells)}</tr>'
    )


def table(heads: Sequence[str], rows: Sequence[str], style: str = "", label: str = "") -> str:
    """`style` is the class of every column's head but the first; rows are ready HTML.

    The frame scrolls sideways and takes the keyboard's focus, so that keys can scroll it too.
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
    """The resolved configuration as written, and where it ran."""
    rows = [row(text(key), [text(_plain(value))]) for key, value in environment.items()]
    where = table(["environment", ""], rows) if rows else ""
    return f'{where}<h3>config.yaml</h3><pre class="config">{text(config)}</pre>'


def _plain(value: Any) -> str:
    """A command as a line for a shell, and packages with their versions."""
    if isinstance(value, list):
        return shlex.join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {own}" for name, own in value.items())
    return str(value)
