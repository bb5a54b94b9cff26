"""The templates of this folder, and the pieces that several pages are made of."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from azr_population.pages.web.programs import marked
from azr_population.runs.formatting import show

MAX_TEXT = 3000
"""How many characters of a program, an answer or a setting are shown."""


def cut(value: Any) -> str:
    """`value` as encodable text, cut at MAX_TEXT; not yet HTML."""
    plain = str(value)
    more = f" ... ({len(plain) - MAX_TEXT:,} more characters)" if len(plain) > MAX_TEXT else ""
    # Lone surrogates cannot be encoded, and some parsers stop at NUL.
    plain = plain[:MAX_TEXT].replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return plain + more


@lru_cache(maxsize=1)
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else cut(value),
    )
    environment.filters |= {"show": show, "code": lambda source: Markup(marked(cut(source)))}
    return environment


def piece(template: str, **context: Any) -> Markup:
    """A template of this folder, filled. Whatever it prints is escaped and cut but `Markup`.

    Its filters: `code` colours a program, `show` formats a number that may be missing.
    """
    return Markup(_templates().get_template(template).render(context))


def table(
    heads: Sequence[str], rows: Sequence[Sequence[Any]], style: str = "", label: str = ""
) -> Markup:
    """A table whose rows begin with a head; `style` is the class of all columns but the first.

    The frame scrolls sideways and can be focused, so that keys scroll it too.
    """
    return piece("table.html", heads=heads, rows=rows, style=style, label=label or heads[0])


def empty(words: str) -> Markup:
    """A message in place of a figure or table without data."""
    return Markup('<p class="empty">{}</p>').format(words)


def note(words: str) -> Markup:
    """A remark above or below a figure."""
    return Markup('<p class="note">{}</p>').format(words)


def small(value: str, below: str) -> Markup:
    """A value with smaller figures below it."""
    return Markup("{}<br><small>{}</small>").format(value, below)
