"""Standard output for tables and colours."""

import io
import sys

from rich.console import Console


class StandardOutput(Console):
    """Standard output that raises when its reader is gone; rich would end the process."""

    def on_broken_pipe(self) -> None:
        """Called by rich while it handles a BrokenPipeError."""
        raise


def plain_output() -> StandardOutput:
    """Standard output that prints what it is given: no markup, and signs that a terminal does not
    know are written out and do not end the command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return StandardOutput(highlight=False, markup=False, emoji=False, soft_wrap=True)
