"""`UserError`, the exception for mistakes that the user can correct."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


class UserError(Exception):
    """A mistake that the user can correct.

    The message is one line that names the thing, the value and the way out. The command line prints
    it without a traceback and exits with code 2. `key` is the refused configuration key or option,
    such as `population.batch_size` or `--out`; None if something else is refused. The message need
    not repeat it if it begins with it (`KEY=VALUE is ...`, `KEY: ...`, `--out VALUE ...`).
    """

    def __init__(self, message: str = "", *, key: str | None = None) -> None:
        super().__init__(message)
        begins = re.match(r"(--[a-z-]+)\b|([a-z_]+(?:\.[a-z_]+)*)(?==|: )", message)
        self.key = key or (begins[0] if begins else None)


class NotInstalled(UserError):
    """A package is not installed here; another machine may have it."""


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """` (did you mean X?)` with the most similar of the names; empty if none is similar."""
    near = difflib.get_close_matches(str(name), names, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def first_problem(error: ValidationError) -> str:
    """The first problem that pydantic reports: `inputs.0: Input should be a valid string`."""
    problem = error.errors()[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or the error's type if the message is empty."""
    return str(error).strip().partition("\n")[0].rstrip() or type(error).__name__
