"""The one exception that is meant for the person at the keyboard."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can mend.

    The message is one line that names the thing, the value and the way out. The command line prints
    it without a traceback and exits with code 2.
    """


def first_line(error: BaseException) -> str:
    """The first line of an error's message; the error's type where it has none."""
    return str(error).strip().partition("\n")[0].rstrip() or type(error).__name__
