"""The one exception that is meant for the person at the keyboard."""

from __future__ import annotations


class UserError(Exception):
    """Something the user can mend.

    The message is one line that names the thing, the value and the way out. The command line prints
    it without a traceback and exits with code 2.
    """
