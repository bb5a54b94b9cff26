"""How far an evaluation is, and how long it still takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


class Advance(Protocol):
    """Told how many more are done."""

    def __call__(self, count: int) -> None: ...


class View:
    """Bars on a terminal; elsewhere a line when something begins."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)

    def say(self, line: str) -> None:
        """A line for the person who waits."""
        self.console.print(line, highlight=False, markup=False)

    @contextmanager
    def bar(self, title: str, total: int) -> Iterator[Advance]:
        """Shows that so many are to be done, while inside."""
        if not self.console.is_terminal:
            self.say(f"{title}: {total}")
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
            transient=True,
        ) as progress:
            task = progress.add_task(title, total=total)
            yield lambda count: progress.advance(task, count)
