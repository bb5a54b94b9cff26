"""Standard output of commands: control characters in names from strangers' folders are escaped."""

import io
import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from azr_population.printable import printable


class StandardOutput(Console):
    """Standard output that raises when its reader is gone; rich would end the process."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Rich's rendering, with control characters of texts written out (`printable`)."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))

    def on_broken_pipe(self) -> None:
        """Called by rich while it handles a BrokenPipeError."""
        raise


def plain_output() -> StandardOutput:
    """Standard output that prints what it is given, without markup."""
    raw = isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.RawIOBase)
    if raw:  # python -u, PYTHONUNBUFFERED: a write that a signal cuts short loses its rest
        buffered = io.BufferedWriter(sys.stdout.buffer)
        kept = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = io.TextIOWrapper(buffered, *kept, line_buffering=True)
    return StandardOutput(highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(line: str) -> None:
    """Progress goes to standard error: what is asked for (tables, commands) can be piped."""
    print(printable(line), file=sys.stderr, flush=True)
