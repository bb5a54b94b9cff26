"""Signals that ask a program to stop."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def stop_requests(received: list[int], notify: Callable[[], None]) -> Iterator[None]:
    """Adds each SIGINT, SIGTERM and SIGHUP to `received` and calls `notify`."""

    def receive(number: int, frame: Any) -> None:
        received.append(number)
        # A signal that comes while a line is being written cannot write another.
        with suppress(RuntimeError):
            notify()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
