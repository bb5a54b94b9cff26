"""What is being done and since when, printed while something takes long; and signals to stop."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
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


@contextmanager
def stop_requests(received: list[int], notify: Callable[[], None]) -> Iterator[None]:
    """Adds each SIGINT, SIGTERM and SIGHUP to `received` and calls `notify`."""

    def receive(number: int, frame: Any) -> None:
        received.append(number)
        # One that comes while a line is being written cannot write another.
        with suppress(RuntimeError):
            notify()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def beside(words: Text, bar: ProgressBar) -> Table:
    """Words and a bar that takes the rest of the line."""
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(no_wrap=True)
    row.add_column(ratio=1)
    row.add_row(words, bar)
    return row


def moving(words: str) -> Table:
    """Words and a bar that moves while it is redrawn."""
    return beside(Text(words), ProgressBar(pulse=True, animation_time=time.monotonic()))


@contextmanager
def spinner(title: str, console: Console | None = None) -> Iterator[Callable[[str], None]]:
    """What is given is called with whatever is begun (`student_0, 3 of 12`): shown with the time
    and a moving bar in a terminal, elsewhere as a line a minute; both on standard error."""
    console = console or Console(file=sys.stderr)
    began, current = time.monotonic(), ""
    live = Live(console=console, auto_refresh=False, transient=True)

    def say() -> None:
        what = f"{current}, " if current else ""
        words = f"{title}: {what}{duration(time.monotonic() - began)} so far"
        if console.is_terminal:
            live.update(moving(words), refresh=True)
        else:
            console.print(words, markup=False, highlight=False, soft_wrap=True)

    def begin(what: str) -> None:
        nonlocal current
        current = what
        if console.is_terminal:
            say()

    if not console.is_terminal:
        with heartbeat(say, ELSEWHERE):
            yield begin
        return
    with live, heartbeat(say, IN_A_TERMINAL):
        yield begin
