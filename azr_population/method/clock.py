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

    def metrics(self) -> dict[str, float]:
        """`time/<phase>` of each phase, and `time/step` since the start, in seconds."""
        phases = {f"time/{name}": seconds for name, seconds in self.phases.items()}
        return {**phases, "time/step": time.perf_counter() - self._start}

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
