"""Lines that are printed while something takes long, and signals to stop."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

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
