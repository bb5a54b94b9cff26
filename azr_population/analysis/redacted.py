"""Settings as a page may show them: no secrets, no places on the machine where a run was played."""

import re
from typing import Any

_SECRET = re.compile(r"token|secret|passw|credential|api_?key|private_?key|auth|(^|_)key$", re.I)
_COUNTS = re.compile(r"(^|_)tokens($|_)", re.I)
"""`max_answer_tokens` is a number of tokens, not a token."""
_SECRET_VALUE = re.compile(
    r"\b(hf_\w{8,}|sk-[\w-]{8,}|gh[pousr]_\w{8,}|github_pat_\w+)|(?<=://)[^/\s@]+@"
)
_PATH = re.compile(r"(?<![\w.:/])(?:~|/)[^\s:,;\"']*/([^\s:,;\"'/]+)/?")
HIDDEN = "(not shown)"


def redacted(value: Any, key: str = "") -> Any:
    """The same value with what a key or its own look says is secret hidden, and of every absolute
    path the last part alone."""
    if _SECRET.search(key) and not _COUNTS.search(key) and value not in (None, ""):
        return HIDDEN
    if isinstance(value, dict):
        return {name: redacted(inner, str(name)) for name, inner in value.items()}
    if isinstance(value, list):
        return [redacted(inner, key) for inner in value]
    if isinstance(value, str):
        return _PATH.sub(r"…/\1", _SECRET_VALUE.sub(HIDDEN, value))
    return value
