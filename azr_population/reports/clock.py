"""How long a run still takes."""

from __future__ import annotations

from collections import deque

from azr_population.reports.lines import Record, duration


class Clock:
    """Time left, from the mean of the last steps' durations: early steps soon stop counting."""

    def __init__(self, done: int, steps: int, window: int = 10) -> None:
        self.done, self.steps = done, steps
        self._last: deque[float] = deque(maxlen=window)

    def tick(self, step: Record) -> None:
        """Takes in a finished step; steps are counted from 1."""
        self.done = step["step"]
        self._last.append(step.get("seconds") or 0.0)

    @property
    def per_step(self) -> float | None:
        """Seconds per step of late; None before the first."""
        return sum(self._last) / len(self._last) if self._last else None

    @property
    def left(self) -> str:
        """Time left as text, `?` before the first step."""
        per_step = self.per_step
        return "?" if per_step is None else duration(per_step * max(0, self.steps - self.done))
