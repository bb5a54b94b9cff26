"""What may be shown, and what may leave this machine: for terminal, pages, cards and exports.

`printable` is the one place that escapes what a stranger's text does to a terminal or a page.
`shareable` is the one place that takes paths, names of users and secrets out of what is published;
cards, exports and pages use it.
"""

import csv
import getpass
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

HIDDEN = "(hidden)"

_WORDS = r"(?<![a-z])(?:api_?keys?|keys?|tokens?|secrets?|passw(?:or)?ds?|credentials?)"
_SECRET_KEY = re.compile(rf"{_WORDS}$", re.I)
"""Names of settings and of variables whose values nobody else may see: `api_key`, `HF_TOKEN`. Their
last word says it; a number is not a secret (`max_answer_tokens`)."""
_SECRET = re.compile(
    r"\b(?:hf|sk|pk|ghp|gho|ghs|ghu|glpat|xox[a-z]|github_pat|AKIA)[-_]?[A-Za-z0-9_\-]{16,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
    r"|(?<=://)[^\s/@]+:[^\s/@]+(?=@)"
)
"""Tokens of the common services, JSON web tokens, and a password in an address."""
_ASSIGNED = re.compile(
    rf"((?<![\w.\-])[\w.\-]{{0,80}}?{_WORDS}\s{{0,9}}[=:]\s{{0,9}}|--[\w\-]{{0,80}}?{_WORDS}\s+)"
    r"(?![\d.]+(?:[\s,;]|$))(\"[^\"]*\"|'[^']*'|[^\s,;]+)",
    re.I,
)
_PATH = re.compile(r"(?<![\w./:~<-])(?:~[\w.]*/|/|[A-Za-z]:\\)(?:[\w.@+\-]+[/\\])*[\w.@+\-]+")


def printable(value: Any) -> str:
    """`value` as text that moves no cursor and hides nothing: what cannot be printed (control
    characters, escape sequences, marks that turn the direction of writing) is written out as Python
    would (`\\x1b`); line breaks and tabs stay."""
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else sign.encode("unicode_escape").decode()
        for sign in str(value)
    )


def shareable(value: Any, key: str = "") -> Any:
    """`value` as it may be published: text, or settings as nested mappings and sequences.

    Values of keys that may be secret and texts that look like a token are hidden, absolute paths
    are cut to their last part, and this user's name and home are left out. `key` is the value's, if
    it has one. Numbers, booleans and None stay as they are.
    """
    if isinstance(value, Mapping):
        secret = bool(_SECRET_KEY.search(key))
        return {
            shareable(str(name)): shareable(item, key if secret else str(name))
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [shareable(item, key) for item in value]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        return value
    return HIDDEN if value and _SECRET_KEY.search(key) else _shareable_text(value)


def _shareable_text(text: str) -> str:
    text = _SECRET.sub(HIDDEN, text)
    text = _ASSIGNED.sub(rf"\1{HIDDEN}", text)
    text = _PATH.sub(lambda match: PurePath(match[0].replace("\\", "/")).name, text)
    return re.sub(rf"\b{re.escape(_user())}\b", "user", text) if len(_user()) > 3 else text


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without an entry
        return ""


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours where there are some: `4:05`, `1:02:09`."""
    total = max(0, round(seconds))
    hours, minutes, rest = total // 3600, total // 60 % 60, total % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """RFC 4180 with plain line ends. Text that a spreadsheet would run as a formula is quoted."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_no_formula(cell) for cell in row] for row in (header, *rows))
    return text.getvalue()


def _no_formula(cell: object) -> object:
    if not isinstance(cell, str) or cell == "-" or not cell.startswith(tuple("=+-@\t\r")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
