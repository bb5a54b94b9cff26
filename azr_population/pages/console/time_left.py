"""How long a run still takes, estimated from its last steps."""

import time
from collections import deque

from azr_population.printable import duration
from azr_population.runs.records import Record


class TimeLeft:
    """The time left by the mean duration of the last `window` steps."""

    def __init__(self, done: int, steps: int, window: int = 10) -> None:
        self.done, self.steps = done, steps
        self._last: deque[float] = deque(maxlen=window)
        self._began = time.monotonic()

    def tick(self, step: Record) -> None:
        """Counts a finished step; steps begin at 1."""
        self.done = step["step"]
        self._last.append(step.get("time/step") or 0.0)
        self._began = time.monotonic()

    def in_step(self, phase: str) -> str:
        """What is being done in the step at hand, and since when: `step 3: solve, 2:05 so far`."""
        name = f"{phase}, " if phase else ""
        return f"step {self.done + 1}: {name}{duration(time.monotonic() - self._began)} so far"

    @property
    def per_step(self) -> float | None:
        """Seconds per step over the window; None before the first step."""
        return sum(self._last) / len(self._last) if self._last else None

    @property
    def left(self) -> str:
        """Time left as text, `?` before the first step."""
        per_step = self.per_step
        return "?" if per_step is None else duration(per_step * max(0, self.steps - self.done))
