"""What is being done and since when, printed while something takes long."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from azr_population.printable import duration

IN_A_TERMINAL, ELSEWHERE = 0.5, 60.0
"""Seconds between two beats."""


@contextmanager
def heartbeat(beat: Callable[[], None], seconds: float) -> Iterator[None]:
    """Calls `beat` every so many seconds, while inside: by a timer of the process and no thread,
    since the referee forks. Where the alarm is taken (by a test's time limit), never."""
    free = signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    if not free or threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: Any) -> None:
        # One that comes while a line is being written cannot write another.
        with suppress(RuntimeError, BrokenPipeError):
            beat()

    signal.signal(signal.SIGALRM, handle)
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def moving(words: str) -> Table:
    """Words and a bar that moves while it is redrawn."""
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(no_wrap=True)
    row.add_column(ratio=1)
    row.add_row(Text(words), ProgressBar(pulse=True, animation_time=time.monotonic()))
    return row


@contextmanager
def spinner(title: str, console: Console | None = None) -> Iterator[Callable[[str], None]]:
    """What is given is called with whatever is begun (`student_0, 3 of 12`): shown with the time
    and a moving bar in a terminal, elsewhere as a line a minute; both on standard error."""
    console = console or Console(file=sys.stderr)
    began, current = time.monotonic(), ""

    def words() -> str:
        so_far = duration(time.monotonic() - began)
        return f"{title}: {current}, {so_far} so far" if current else f"{title}: {so_far} so far"

    def say() -> None:
        console.print(words(), markup=False, highlight=False, soft_wrap=True)

    live = Live(console=console, auto_refresh=False, transient=True)

    def redraw() -> None:
        live.update(Group(moving(words())), refresh=True)

    def begin(what: str) -> None:
        nonlocal current
        current = what
        if console.is_terminal:
            redraw()

    if not console.is_terminal:
        with heartbeat(say, ELSEWHERE):
            yield begin
        return
    with live, heartbeat(redraw, IN_A_TERMINAL):
        yield begin
