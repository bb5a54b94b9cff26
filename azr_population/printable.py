"""Text that is safe to show (`printable`) and to publish (`shareable`).

`printable` escapes control characters for the terminal and pages. `shareable` removes paths, user
names and secrets from cards, exports and pages.
"""

import getpass
import os
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

HIDDEN = "(hidden)"

_WORDS = r"(?<![a-z])(?:api_?keys?|keys?|tokens?|secrets?|passw(?:or)?ds?|credentials?)"
_SECRET_KEY = re.compile(rf"{_WORDS}$", re.I)
"""Names of settings and variables with secret values, by their last word: `api_key`, `HF_TOKEN`. A
number is not a secret (`max_answer_tokens`)."""
_SECRET = re.compile(
    r"\b(?:hf|sk|pk|ghp|gho|ghs|ghu|glpat|xox[a-z]|github_pat|AKIA)[-_]?[A-Za-z0-9_\-]{16,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
    r"|(?<=://)[^\s/@]+:[^\s/@]+(?=@)"
)
"""Tokens of common services, JSON web tokens, and passwords in URLs."""
_ASSIGNED = re.compile(
    rf"((?<![\w.\-])[\w.\-]{{0,80}}?{_WORDS}\s{{0,9}}[=:]\s{{0,9}}|--[\w\-]{{0,80}}?{_WORDS}\s+)"
    r"(?![\d.]+(?:[\s,;]|$))(\"[^\"]*\"|'[^']*'|[^\s,;]+)",
    re.I,
)
_PATH = re.compile(r"(?<![\w./:~<-])(?:~[\w.]*/|/|[A-Za-z]:\\)(?:[\w.@+\-]+[/\\])*[\w.@+\-]+")


def printable(value: Any) -> str:
    """`value` as text without control characters, escape sequences and bidirectional marks: they
    are escaped as in Python (`\\x1b`). Line breaks and tabs stay."""
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else sign.encode("unicode_escape").decode()
        for sign in str(value)
    )


def shareable(value: Any, key: str = "") -> Any:
    """`value` (text, or nested mappings and sequences) in a form that may be published.

    Values of secret keys and texts that look like a token are hidden, absolute paths are cut to
    their last part, and this user's name and home are removed. `key` is the value's key, if any.
    Numbers, booleans and None do not change.
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
    """Minutes and seconds, with hours if needed: `4:05`, `1:02:09`."""
    total = max(0, round(seconds))
    hours, minutes, rest = total // 3600, total // 60 % 60, total % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
