"""Text that is safe to show (`printable`, `redact`) and to publish (`shareable`).

`printable` escapes control characters for the terminal and pages. `redact` hides secrets;
`redact_known` does not guess them from the look of a word. `shareable` also removes paths and the
names of this user and machine from cards, exports and pages.
"""

import getpass
import html
import os
import re
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

HIDDEN = "(hidden)"

_BEGINS = r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))"
"""Before a word of a name: `api_key`, `HF_TOKEN`, `accessToken`; not in `monkey`."""
_WORDS = (
    rf"(?:{_BEGINS}(?i:(?:api|access|account|auth|client|encryption|license|master|private|secret"
    r"|service|signing|storage|subscription)[_-]?keys?|token|secrets?|credentials?|auth"
    r"|authorization|cookie|passphrase|pwd|pass|sig|signature)|(?i:passw(?:or)?ds?)"
    r"|(?<=[A-Z0-9])_KEYS?)"
)
_SECRET_KEY = re.compile(rf"{_WORDS}$")
"""Names of settings and variables with secret values, by their last word: `api_key`, `HF_TOKEN`,
`ANY_KEY`; not `prompt_key`. A number is not a secret (`max_answer_tokens`)."""
_PREFIXES = (
    "(?:hf|sk|pk|rk|gh[a-z]|github_pat|gl[a-z]{1,4}|xox[a-z]|xapp|npm|pypi|do[por]_v1|dckr_pat"
    "|shp[a-z]{2}|whsec|lin_api|nvapi|r8|gsk|pplx|xai|tvly|lsv2|rubygems|figd|sq0[a-z]{3}|wandb_v1"
    "|AGE-SECRET-KEY|GOCSPX|tskey|ntn|pcsk|PMAK|pul|sbp|fo1|tfp|tgp_v1|sntrys)[-_]"
    r"|AIza|AT[AC]TT3x|hv[sbr]\.|ya29\.|EAAA|EZAK|AKCp|SG\.[\w-]{16,}\.|dapi(?=[0-9a-f]{32}\b)"
)
"""Of tokens that may be letters or hexadecimal digits alone, or hold separators."""
_RUN = r"(?=[A-Za-z]*\d+[A-Za-z]+\d)[A-Za-z0-9]{20,}[\w=-]*"
_RANDOM = (
    r"(?<![A-Za-z0-9/])(?![A-Za-z0-9]*[a-z]{5})(?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[A-Z])"
    rf"{_RUN}|\b[A-Za-z][A-Za-z0-9]{{1,11}}[-_](?:[A-Za-z0-9]{{1,12}}[-_])*(?![0-9a-f]+\b){_RUN}"
)
"""20 letters with digits between them: small and capital ones, no five small ones in a row
(`Qwen2p5Coder7BInstruct`), and not a part of a path; or of any kind but a hash behind a word."""
_AMBIGUOUS = "(?:hf|[spr]k|gl(?:m|ue)|npm|r8|xai|pul)[-_]"
"""Prefixes with which names of folders begin too: `r8_lr1e-4_seed3_bs64`, `hf_Qwen2-Coder-7B`."""
_PREFIXED = rf"\b(?:{_PREFIXES})(?=[\w-]*[A-Z0-9])[\w=-]{{16,}}"
# After those, a token has 20 letters and digits in a row.
_UNMISTAKABLE = rf"(?!\b{_AMBIGUOUS}(?![\w-]*?[A-Za-z0-9]{{20}})){_PREFIXED}"
_KEYS = r"-----BEGIN [A-Z ]*PRIVATE KEY.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
_OF_FORM = (
    r"\b\d{8,10}:[\w-]{35}\b|\bA(?:KI|SI)A[A-Z0-9]{12,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
    r"|(?<=hooks\.slack\.com/services/)\S+|(?<=/api/webhooks/)\S+"
    r"|(?<=://)(?:[^\s/@:]*:[^\s@\"']+|[^\s/@]+)(?=@)"
    r"|(?<=[Bb]earer )[\w.~+/=-]{8,}|(?<=[Bb]asic )(?=\S*(?:[0-9=]|[a-z][A-Z]))[\w+/]{6,}=*"
    r"|(?<=login )[0-9a-f]{40}\b"
)
_SECRET = re.compile(rf"{_KEYS}|{_PREFIXED}|{_RANDOM}|{_OF_FORM}", re.DOTALL)
"""Tokens of common services, private keys, JSON web tokens, users and passwords in URLs, and what
looks drawn at random."""
_KNOWN_SECRET = re.compile(rf"{_KEYS}|{_UNMISTAKABLE}|{_OF_FORM}", re.DOTALL)
"""The same without what has the look of a token only, which names of folders have too."""
_VALUE = (
    r"(?P<quote>\\*[\"'](?:(?<=')'(?=\w))?)(?:(?!(?P=quote)).)*(?P=quote)"
    r"|[|>][+-]?\s*(?:\n|\\+n)(?:[ \t]+\S.*?(?:\n|\\+n|$))+"
    r"|(?:(?i:bearer|basic|token) )?[^\s,;&\"'}\])]+"
)
_ASSIGNED = re.compile(
    rf"((?<![\w.\-])[\w.\-]{{0,80}}?{_WORDS}\\*[\"']{{0,2}}\s{{0,9}}[=:]\s{{0,9}}"
    rf"|--[\w\-]{{0,80}}?{_WORDS}(?:\s+|\\*[\"']{{0,2}},\s*)"
    r"|(?:\s-u|--user)\s+(?=\S+:)|\blogin\s+\S+\s+(?:account\s+\S+\s+)?password\s+"
    r"|(?i:cookie|authorization):[^\S\n]*(?=[^\n]))"
    rf"(?![\d.]+(?:[\s,;]|$)|{re.escape(HIDDEN)})(?:{_VALUE})"
)
_NAME = r"[\w.@+\-]+"
_PATH = re.compile(
    rf"(?:file://[\w.-]*|(?<![\w./~<\\-]))(?:~[\w.]*/|/(?!/)|[A-Za-z]:[\\/]|\\\\)"
    rf"(?:{_NAME}[/\\])*{_NAME}"
)
_HOME = re.compile(r"^(?:/home|/Users|[A-Za-z]:\\Users)[/\\][^/\\]+$", re.I)


def printable(value: Any) -> str:
    """`value` as text without control characters, escape sequences and bidirectional marks: they
    are escaped as in Python (`\\x1b`). Line breaks and tabs stay."""
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else sign.encode("unicode_escape").decode()
        for sign in str(value)
    )


def print_lines(*lines: object) -> None:
    """Prints a line for each argument, `printable`: it may hold names from somebody else's
    folder."""
    print(*map(printable, lines), sep="\n")


def card_line(value: Any) -> str:
    """`value` as one line of a card that is published: `shareable`, and without markup."""
    return html.escape(shareable(printable(value)).replace("\n", " "), quote=False)


def redact(value: Any) -> Any:
    """`value` (text, or nested mappings and sequences) with `HIDDEN` for the values of secret keys
    and options, and for what looks like a token. Numbers, booleans and None do not change."""
    return _mapped(value, "", partial(_without_secrets, variables=_secret_variables()))


def redact_known(value: Any, own_words: Collection[str] = ()) -> Any:
    """`value` as by `redact`, but long words of letters and digits stay, which names of folders
    are: a token is hidden where its prefix, its form or what stands before it says so. Values of
    environment variables are hidden unless they are in one of `own_words`."""
    variables = [
        secret for secret in _secret_variables() if not any(secret in word for word in own_words)
    ]
    return _mapped(value, "", partial(_without_secrets, variables=variables, tokens=_KNOWN_SECRET))


def shareable(value: Any) -> Any:
    """A redacted value that may be published: absolute paths are cut to their last part, and the
    names of this user and machine and the user's home are removed."""
    return _mapped(value, "", partial(_shareable_text, variables=_secret_variables()))


def _mapped(value: Any, key: str, change: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        secret = bool(_SECRET_KEY.search(key))
        return {
            _mapped(str(name), "", change): _mapped(item, key if secret else str(name), change)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        options = ["", *(item if isinstance(item, str) else "" for item in value)]
        return [
            _mapped(item, option if option.startswith("-") else key, change)
            for option, item in zip(options, value, strict=False)
        ]
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        return value
    return HIDDEN if value and _SECRET_KEY.search(key) else change(value)


def _secret_variables() -> list[str]:
    """The values of this process's environment variables whose names sound secret; the shell's
    working directories, PWD and OLDPWD, do not, nor do the paths of files with secrets."""
    values = [
        value
        for name, value in os.environ.items()
        if _SECRET_KEY.search(name) and len(value) >= 8 and value[0] != "/"
    ]
    return sorted(values, key=len, reverse=True)


def _without_secrets(text: str, variables: Sequence[str], tokens: re.Pattern[str] = _SECRET) -> str:
    for value in variables:
        text = text.replace(value, HIDDEN)
    return _ASSIGNED.sub(rf"\1{HIDDEN}", tokens.sub(HIDDEN, text))


def _shareable_text(text: str, variables: Sequence[str]) -> str:
    text = _PATH.sub(_last_part, _without_secrets(text, variables))
    for name, replacement in _own_names().items():
        if len(name) > 3 and name != "localhost":
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", replacement, text)
    return text


def _last_part(match: re.Match[str]) -> str:
    path = re.sub("^file://[^/]*", "", match[0])
    return "~" if _HOME.search(path) else PurePath(path.replace("\\", "/")).name


def _own_names() -> dict[str, str]:
    """Names of this machine and this user, and their replacements."""
    host = socket.gethostname()
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a user without an entry
        user = ""
    return {host: "host", host.partition(".")[0]: "host", user: "user"}


def duration(seconds: float) -> str:
    """Minutes and seconds, with hours if needed: `4:05`, `1:02:09`."""
    total = max(0, round(seconds))
    hours, minutes, rest = total // 3600, total // 60 % 60, total % 60
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
