"""HTML files that need no network: Jinja2 templates, charts by Vega, one script, one style.

Whatever a template prints is escaped and cut but `Markup`; JSON within a page cannot end its
element; the page's policy allows exactly its own two scripts, and none that text brings along.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Number, Operator, String

from azr_population.analysis.charts import DARK, THEME, Chart, specification
from azr_population.files import write_atomically
from azr_population.printable import printable, redact, shareable
from azr_population.runs.records import show

_PAGES = Path(__file__).parent / "pages"
_PYTHON = PythonLexer(stripnl=False, ensurenl=False)
_COLOURS = {Keyword: "k", Operator.Word: "k", String: "s", Number: "n", Comment: "c"}
"""Kind of token -> a class of the page's style."""
MAX_TEXT = 3000
"""Characters of a program, an answer or a setting that are shown."""


def page(template: str, title: str, **context: Any) -> str:
    """The page of a template that extends `base.html.j2`, whole: style, scripts, charts, data.

    Its charts come from `embed`. Vega's bundle is inlined once, with its licences (BSD and
    others), and only where a chart is.
    """
    body = render(template, title=title, **context)
    style, script = (_read(name) for name in ("page.css", "page.js"))
    charts = f"/*\n{_read('vega_licences.txt')}*/\n"
    scripts = [charts + bundle(), script] if 'class="vega"' in body else []
    theme = Markup(embedded({"config": THEME, "dark": DARK}))
    parts = {"style": Markup(style), "scripts": [Markup(text) for text in scripts]}
    policy = Markup(_policy(scripts))
    return render("frame.html.j2", title=title, body=body, theme=theme, policy=policy, **parts)


def render(template: str, **context: Any) -> Markup:
    """A template of `analysis/pages`, filled.

    Filters: `code` colours a program, `show` formats a number that may be missing.
    """
    return Markup(_templates().get_template(template).render(context))


def embed(chart: Chart | None, title: str, note: str = "", style: str = "") -> Markup:
    """A chart as a figure: its title, a note, buttons for SVG, PNG and data, and where it is drawn.

    Args:
        style: `wide` takes the whole row, `natural` scrolls sideways if it is wider than the page.
    """
    if chart is None:
        return Markup()
    spec = {**specification(chart), "description": publishable(title)}  # the aria-label
    height = spec.get("height")
    return render(
        "figure.html.j2",
        title=title,
        note=note,
        style=style,
        height=height if isinstance(height, int) else 0,
        spec=Markup(embedded(packed(spec))),
    )


def packed(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The specification as it may be published, its data by columns, five digits a number, repeated
    texts once: a column is a list of numbers, or `{"levels", "codes"}`. `page.js` unpacks it."""
    published: dict[str, str] = {}
    datasets = {
        name: {key: _column([row.get(key) for row in rows], published) for key in rows[0]}
        if rows
        else {}
        for name, rows in (spec.get("datasets") or {}).items()
    }
    changed = {text: instead for text, instead in published.items() if text != instead}
    settings = {key: value for key, value in spec.items() if key != "datasets"}
    return {**_published(settings, changed), "datasets": datasets}


def _published(value: Any, changed: Mapping[str, str]) -> Any:
    """Titles, scales, expressions: texts of the data as they stand there, and no secrets. Names of
    this user and machine may be words of Vega's, and stay."""
    if isinstance(value, Mapping):
        return {key: _published(item, changed) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_published(item, changed) for item in value]
    if not isinstance(value, str):
        return value
    for text, instead in changed.items():
        value = value.replace(text, instead)
    return redact(value)


def _column(values: list[Any], published: dict[str, str]) -> Any:
    if all(value is None or type(value) in (int, float) for value in values):
        return [_rounded(value) for value in values]
    codes = {value: i for i, value in enumerate(dict.fromkeys(values))}
    published |= {value: publishable(value) for value in codes if isinstance(value, str)}
    levels = [published[value] if isinstance(value, str) else value for value in codes]
    return {"levels": levels, "codes": [codes[value] for value in values]}


def _rounded(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    if float(value).is_integer() and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.5g}")


def embedded(data: Any) -> str:
    """JSON for a script element; no character in it can end the element."""
    encoded = json.dumps(data, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def highlighted(source: str) -> Markup:
    """A program with its syntax coloured; if it is not Python, only the colours are wrong."""
    parts = []
    for kind, text in _PYTHON.get_tokens(truncated(source)):
        style = next((_COLOURS[group] for group in _COLOURS if kind in group), "")
        parts.append(
            Markup('<span class="{}">{}</span>').format(style, text) if style else escape(text)
        )
    return Markup("").join(parts)


def format_number(value: float, percent: bool) -> str:
    """A number in a few digits: `8.4%`, `31%`, `0.125`, `12,345`."""
    value, unit = (100.0 * value, "%") if percent else (value, "")
    size = abs(value)
    if size >= 1e15:
        return f"{value:.1e}{unit}"
    places = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    if unit:
        places = 1 if size < 10 else 0
    value = round(value, places) + 0.0  # -0.0 becomes 0.0
    return f"{value:{',' if size >= 10000 else ''}.{places}f}{unit}"


def publishable(value: Any) -> str:
    """`value` as text without secrets, `truncated`; programs and answers stay what was judged."""
    return truncated(shareable(str(value)))


def truncated(value: Any) -> str:
    """`value` as `printable` text, cut at MAX_TEXT; not yet HTML."""
    plain = str(value)
    more = f" ... ({len(plain) - MAX_TEXT:,} more characters)" if len(plain) > MAX_TEXT else ""
    return printable(plain[:MAX_TEXT]) + more


@lru_cache(maxsize=1)
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script of about 0.9 MB. Making it takes two seconds, so
    it is kept in the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    path = cache / "azr-population" / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError):
        return path.read_text(encoding="utf-8")
    # Imported late: runs without pages need not have it.
    import vl_convert

    script: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    text = script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    return text


def _policy(scripts: Sequence[str]) -> str:
    """Allows these scripts, so that anything that slips through escaping stays inert. Vega sets
    styles of its own."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes or chr(39) + 'none' + chr(39)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


@lru_cache(maxsize=1)
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else publishable(value),
    )
    environment.filters |= {"show": show, "code": highlighted}
    return environment


def _read(name: str) -> str:
    return (_PAGES / name).read_text(encoding="utf-8")
