"""AZR's executor, whose programs run before it is asked for them: many at once, not one by one.

AZR's reward manager hands over one program, waits for it, ten seconds for an endless loop, and
hands over the next. Here what it is going to ask for runs first, on as many processes as there are
cores; AZR's own code then asks as ever and is answered at once. Templates, processes, time limits
and how a result is read stay AZR's: `batch_apply` runs what `apply` would have run. What nobody
foresaw runs when it is asked for.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

Made = TypeVar("Made")

_PROCESSES = 32
"""Most that are started; each is a fork of AZR's trainer."""


class Ahead:
    """Runs programs ahead for `executor`, AZR's; `missed` counts those that were not foreseen.

    AZR takes its programs for deterministic, and caches by answer; so the same program runs once.
    """

    def __init__(self, executor: Any, processes: int | None = None) -> None:
        self._executor = executor
        self._wide = _apart(executor)
        cores = len(os.sched_getaffinity(0))
        self._wide.max_workers = max(executor.max_workers, processes or min(_PROCESSES, cores))
        self._known: dict[str, Any] = {}
        self._apply: Callable[[str], Any] = self._answer
        self.missed = 0

    @staticmethod
    def works_with(executor: Any) -> bool:
        """Whether it is AZR's own; the referee in its place needs no help."""
        return hasattr(executor, "batch_apply")

    @contextmanager
    def answering(self) -> Iterator[Ahead]:
        """Inside, the executor is answered from what has been run."""
        self._executor.apply = lambda code: self._apply(code)
        try:
            yield self
        finally:
            del self._executor.apply
            self._wide.cleanup()

    def foresee(self, calls: Iterable[Callable[[Any], object]]) -> None:
        """Runs what these calls ask of an executor; their results are thrown away."""
        asked: dict[str, Any] = {}
        asking = _apart(self._executor)
        asking.apply = lambda code: asked.setdefault(code, ("True", "Done"))
        for call in calls:
            call(asking)
        self._run(code for code in asked if code not in self._known)

    def together(self, calls: Sequence[Callable[[], Made]]) -> list[Made]:
        """The results of calls that ask the executor themselves, and may ask for more once they are
        answered. One of them goes on at a time; what they wait for runs together."""
        made: list[Any] = [None] * len(calls)
        errors: list[BaseException] = []
        state, turn = threading.Condition(), threading.Lock()
        running, asked = len(calls), list[str]()
        waiting = 0

        def ask(code: str) -> Any:
            nonlocal running, waiting
            if code not in self._known:
                turn.release()
                with state:
                    asked.append(code)
                    running, waiting = running - 1, waiting + 1
                    state.notify_all()
                    state.wait_for(lambda: code in self._known)
                turn.acquire()
            return self._known[code]

        def work(place: int) -> None:
            nonlocal running
            with turn:
                try:
                    made[place] = calls[place]()
                except BaseException as error:
                    errors.append(error)
            with state:
                running -= 1
                state.notify_all()

        self._apply = ask
        try:
            for place in range(len(calls)):
                threading.Thread(target=work, args=(place,), daemon=True).start()
            while True:
                with state:
                    while running:
                        state.wait()
                    if not waiting:
                        break
                    codes, asked = list(dict.fromkeys(asked)), []
                results = self._wide.batch_apply(codes)
                with state:
                    self._known.update(zip(codes, results, strict=True))
                    running, waiting = waiting, 0
                    state.notify_all()
        finally:
            self._apply = self._answer
        if errors:
            raise errors[0]
        return made

    def _run(self, codes: Iterable[str]) -> None:
        if listed := list(codes):
            self._known.update(zip(listed, self._wide.batch_apply(listed), strict=True))

    def _answer(self, code: str) -> Any:
        if code not in self._known:
            self.missed += 1
            return type(self._executor).apply(self._executor, code)
        return self._known[code]


def _apart(executor: Any) -> Any:
    """The executor with processes of its own: a copy that shared them would end them."""
    made = copy.copy(executor)
    made._process_pool = None
    return made
