"""How long each phase of a step took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

_running: list[str] = []


def current_phase() -> str:
    """What is being done, for whoever watches; empty between phases."""
    return _running[-1] if _running else ""


class PhaseClock:
    """Wall-clock seconds per phase of a step, and since its start."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._start = time.perf_counter()

    def total(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Times what is inside; a phase that comes again goes on."""
        start = time.perf_counter()
        _running.append(phase)
        try:
            yield
        finally:
            _running.pop()
        self.phases[phase] = self.phases.get(phase, 0.0) + time.perf_counter() - start
