"""Signals: the first lets the step at hand be finished, the second stops at once."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from azr_population.pages.console.view import View


@contextmanager
def stop_requests(received: list[int], step: Callable[[], int], view: View) -> Iterator[None]:
    """Adds each SIGINT, SIGTERM and SIGHUP to `received`: the first lets the step at hand be
    finished, the second raises `KeyboardInterrupt`."""

    def receive(number: int, frame: Any) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt
        # A signal that comes while a line is being written cannot write another.
        with suppress(RuntimeError):
            view.on_note(
                f"finishing step {step()}, then stopping; to stop at once and lose what "
                f"came after the last checkpoint: Ctrl-C again, or kill {os.getpid()}"
            )

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    previous = {number: signal.signal(number, receive) for number in numbers}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
