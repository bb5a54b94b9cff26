"""Processes of our own that read what models wrote: a formula can be as hostile as a program.

sympy and Python's parser have inputs that take them hours or all memory. So they run in processes
that the kernel ends after some seconds of processor time (a busy machine changes no verdict) or
beyond some memory; the next item then gets a new process.
"""

import multiprocessing
import os
import resource
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from azr_population.errors import UserError

T = TypeVar("T")
_WAITING_PER_PROCESS = 64
_MEMORY_BYTES = 4 << 30
_WALL_FACTOR = 20


class Workers(AbstractContextManager["Workers"]):
    """A pool of such processes. Use it as a context manager."""

    def __init__(self, processes: int = 0, cpu_seconds: float = 10.0) -> None:
        """`processes`: 0 takes one per core. `cpu_seconds` of one item."""
        try:
            from pebble import ProcessPool
        except ImportError as error:
            raise UserError(f"grading needs {error.name}: pip install {error.name}") from error
        self.processes = processes or len(os.sched_getaffinity(0))
        self.cpu_seconds = cpu_seconds
        self._pool = ProcessPool(
            max_workers=self.processes,
            # A fork of a process that holds a model and threads is neither cheap nor safe.
            context=multiprocessing.get_context("spawn"),
            initializer=_limit,
        )

    def __exit__(self, *exception: object) -> None:
        self._pool.stop()
        self._pool.join()

    def map(
        self, function: Callable[..., T], items: Iterable[tuple[Any, ...]], lost: Callable[[], T]
    ) -> Iterator[T]:
        """`function(*item)` of each, in order; `lost()` where the process came to its end."""
        running: deque[Any] = deque()
        for item in items:
            running.append(self._start(function, item))
            if len(running) >= _WAITING_PER_PROCESS * self.processes:
                yield self._result(running.popleft(), lost)
        while running:
            yield self._result(running.popleft(), lost)

    def _start(self, function: Callable[..., T], item: tuple[Any, ...]) -> Any:
        return self._pool.schedule(
            _within,
            args=[self.cpu_seconds, function, *item],
            timeout=_WALL_FACTOR * self.cpu_seconds,
        )

    def _result(self, future: Any, lost: Callable[[], T]) -> T:
        from pebble import ProcessExpired

        try:
            return future.result()
        except (ProcessExpired, TimeoutError, MemoryError, RecursionError):
            return lost()


def _limit() -> None:
    """In a new process: no more memory than that, and Ctrl-C is for the parent to handle."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Its default action ends the process wherever it is, in the middle of a C function too.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def _within(cpu_seconds: float, function: Callable[..., T], *item: Any) -> T:
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        return function(*item)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
