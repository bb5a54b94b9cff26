"""How far an evaluation is, and how long it still takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import monotonic
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from azr_population.pages.console.pulse import ELSEWHERE, beating

_ENOUGH = 8
"""Of what is to be done, or a twentieth of it: from fewer the time left cannot be told."""


class Advance(Protocol):
    """Told how many more are done."""

    def __call__(self, count: int) -> None: ...


class View:
    """Bars on a terminal, lines elsewhere; both say how long it still takes."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)

    def say(self, line: str) -> None:
        """A line for the person who waits."""
        self.console.print(line, highlight=False, markup=False)

    @contextmanager
    def bar(self, title: str, total: int) -> Iterator[Advance]:
        """Shows that so many are to be done, while inside."""
        if not self.console.is_terminal:
            with self._lines(title, total) as advance:
                yield advance
            return
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
        ) as progress:
            task = progress.add_task(title, total=total)
            yield lambda count: progress.advance(task, count)

    @contextmanager
    def _lines(self, title: str, total: int) -> Iterator[Advance]:
        """A line at the beginning, and one a minute with the time that is left at this pace, once
        enough is done to tell it."""
        self.say(f"{title}: {total}")
        began = monotonic()
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count

        def say() -> None:
            spent = monotonic() - began
            left = ""
            if done >= max(_ENOUGH, total // 20):
                left = f", {timedelta(seconds=round(spent / done * (total - done)))} left"
            self.say(f"{title}: {done} of {total}, {timedelta(seconds=round(spent))} so far{left}")

        with beating(say, ELSEWHERE):
            yield advance
