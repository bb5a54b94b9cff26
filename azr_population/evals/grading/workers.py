"""Processes that read what models wrote: a formula can be as hostile as a program.

sympy and Python's parser have inputs that take hours or all memory, so they run in processes with
a limit of processor time (a busy machine changes no verdict) and of memory.
"""

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from azr_population.errors import UserError

T = TypeVar("T")
_MEMORY_BYTES = 4 << 30
_WALL_FACTOR = 20


class Workers:
    """A pool of such processes; `close` ends them."""

    def __init__(self, processes: int = 0, cpu_seconds: float = 10.0) -> None:
        """`processes`: 0 starts one per core. `cpu_seconds` is for one item."""
        try:
            from pebble import ProcessPool
        except ImportError as error:
            raise UserError(f"grading needs {error.name}: pip install {error.name}") from error
        self.cpu_seconds = cpu_seconds
        self._pool = ProcessPool(
            max_workers=processes or len(os.sched_getaffinity(0)),
            # A fork of a process that holds a model and threads is neither cheap nor safe.
            context=multiprocessing.get_context("spawn"),
            initializer=_limit,
        )

    def close(self) -> None:
        """Ends the processes, whatever they do."""
        self._pool.stop()
        self._pool.join()

    def map(self, function: Callable[..., T], items: Iterable[tuple[Any, ...]]) -> list[T | None]:
        """`function(*item)` of each, in order; None where the process died of its limits."""
        from pebble import ProcessExpired

        def result(future: Any) -> T | None:
            try:
                value: T = future.result()
                return value
            except (ProcessExpired, TimeoutError, MemoryError, RecursionError):
                return None

        wall = _WALL_FACTOR * self.cpu_seconds
        futures = [
            self._pool.schedule(_within, args=[self.cpu_seconds, function, *item], timeout=wall)
            for item in items
        ]
        return [result(future) for future in futures]


def _limit() -> None:
    """In a new process: a memory limit, and Ctrl-C is for the parent to handle."""
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
