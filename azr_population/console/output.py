"""Standard output for tables and colours."""

from __future__ import annotations

from rich.console import Console


class Output(Console):
    """Standard output, which tells when nobody reads it any more; rich would end the process."""

    def on_broken_pipe(self) -> None:
        """Called by rich while it handles a BrokenPipeError."""
        raise
