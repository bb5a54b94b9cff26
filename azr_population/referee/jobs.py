"""The schedule: which calls are left to run, which worker gets them, and what their outcomes are.

Each call is made in a separate child under the full deadline.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from .limits import RefereeSettings
from .sandbox import literal, wire
from .sandbox.wire import Report, SandboxWork
from .verdicts import Reason

_LOSSES = 10  # of a worker, until a work counts as lost
_KILLS = 30  # of a child, until a work counts as lost
_CRASHES = 3  # until a crash counts: a single fault may be a signal from another process


class CallOutcome(NamedTuple):
    """The outcome of one call; `text` is the output's literal if the reason is OK."""

    reason: Reason
    text: str = ""

    @classmethod
    def read(cls, status: int, text: str) -> CallOutcome:
        """The outcome that a child reported."""
        return cls(Reason(wire.STATUSES[status]), text)


_Answer = TypeVar("_Answer")
Outcomes = list[CallOutcome]
Procedure = Generator[Sequence[SandboxWork], Sequence[Outcomes], _Answer]
"""A generator that answers one question: it yields works, receives the outcomes of their calls, and
returns the answer."""


@dataclass(eq=False)
class _Running:
    """A procedure and the works whose outcomes it waits for."""

    number: int
    procedure: Procedure[Any]
    tasks: list[PendingWork] = field(default_factory=list)


@dataclass(eq=False)
class PendingWork:
    """A work with the outcomes of its calls so far."""

    work: SandboxWork
    procedure: _Running | None = None
    """The procedure that waits for it."""
    two_workers: bool = False
    """A call with `again` goes to another worker than the same call without."""
    outcomes: list[CallOutcome | None] = field(default_factory=list)
    in_flight: set[int] = field(default_factory=set)
    """Calls that a worker is making."""
    makers: dict[wire.Call, object] = field(default_factory=dict)
    """The worker of each call without `again`."""
    losses: int = 0
    kills: int = 0
    crashes: Counter[int] = field(default_factory=Counter)
    """Crashes by call."""

    def __post_init__(self) -> None:
        self.outcomes = [None] * len(self.work.calls)

    @property
    def waiting(self) -> list[int]:
        """The calls that have no outcome and that no worker is making."""
        return [n for n, o in enumerate(self.outcomes) if o is None and n not in self.in_flight]

    @property
    def done(self) -> bool:
        return None not in self.outcomes and not self.in_flight

    def next_call(self, worker: object) -> int | None:
        """The call that this worker may make now."""
        waiting = self.waiting
        if self.two_workers:
            calls = self.work.calls
            makers = {n: self.makers.get(calls[n]._replace(again=False)) for n in waiting}
            first = [n for n in waiting if not calls[n].again]
            waiting = first or [n for n in waiting if makers[n] is not worker]
        # The first goes ahead: its failure often settles the others.
        return waiting[0] if waiting and (waiting[0] == 0 or self.outcomes[0]) else None

    def book(self, call: int, outcome: CallOutcome) -> None:
        """Stores a call's outcome. If a failure settles the calls behind it, it settles none before
        it: which of two failures is reported must not depend on timing."""
        if self.outcomes[call] is None:
            self.outcomes[call] = outcome
            if self.work.stop_at_failure and outcome.reason is not Reason.OK:
                self.fill(outcome, call)

    def fill(self, outcome: CallOutcome, behind: int = 0) -> None:
        """Gives this outcome to every call from `behind` on that has none."""
        for call in range(behind, len(self.outcomes)):
            self.outcomes[call] = self.outcomes[call] or outcome


class Job:
    """One message to a worker: a call of a work, made in a separate child."""

    def __init__(self, task: PendingWork, call: int, worker: object = None) -> None:
        self.task = task
        self.call = call
        task.in_flight.add(call)
        made = task.work.calls[call]
        if not made.again:
            task.makers[made] = worker

    def packed(self, settings: RefereeSettings) -> bytes:
        """The bytes to send, without a trace of the call's purpose.

        The program may read everything in its child, so validating and judging with the same values
        must send the same bytes.
        """
        call = self.task.work.calls[self.call]
        if call.kind in (wire.EXPRESSION, wire.LITERAL):
            written = literal.canonical_arguments(call.arguments)
            if written is not None:
                call = call._replace(kind=wire.LITERAL, arguments=written)
        return wire.pack(self.task.work._replace(calls=(call,)), settings.timeout)

    def finish(self, report: Report | None) -> bool:
        """Stores what a child reported; a call without an outcome is made again. False if the
        worker is lost (None) or our code cannot have written the report."""
        task, call = self.task, self.call
        task.in_flight.discard(call)
        if report is None:
            task.losses += 1
            if task.losses >= _LOSSES:
                task.fill(CallOutcome(Reason.LOST))
            return False
        if report.end == wire.END_KILLED and task.kills < _KILLS:
            task.kills += 1
            return True
        if report.end == wire.END_SIGNAL:
            task.crashes[call] += 1
            if task.crashes[call] < _CRASHES:
                return True
        try:
            frame = wire.frame(report.frame)
        except ValueError:
            task.book(call, CallOutcome(Reason.TAMPERED))
            return False
        task.book(call, CallOutcome.read(*frame) if frame else CallOutcome(_end(report)))
        return True


class WorkSchedule:
    """Running procedures, their works that wait for a worker, and the choice of the next job.

    `answers` are the answers of finished procedures by number: 0, 1, ...
    """

    def __init__(self, two_workers: bool = False) -> None:
        self.answers: dict[int, Any] = {}
        self.started = 0
        self._two_workers = two_workers
        self._waiting: dict[PendingWork, None] = {}  # in the order in which they began to wait

    def __len__(self) -> int:
        return len(self._waiting)

    def start(self, procedure: Procedure[Any]) -> None:
        """Starts a procedure."""
        self.started += 1
        self._advance(_Running(self.started - 1, procedure), None)

    def add(self, task: PendingWork) -> None:
        """Queues a work that has calls to make; continues its procedure if it is done."""
        if task.waiting:
            self._waiting[task] = None
        else:
            self._waiting.pop(task, None)
        running = task.procedure
        if running and running.tasks and all(each.done for each in running.tasks):
            self._advance(running, [each.outcomes for each in running.tasks])

    def _advance(self, running: _Running, results: Sequence[Any] | None) -> None:
        """Advances a procedure to its next works or its answer."""
        running.tasks = []
        try:
            works = running.procedure.send(results)  # type: ignore[arg-type]  # None starts it
        except StopIteration as end:
            self.answers[running.number] = end.value
            return
        running.tasks = [PendingWork(work, running, self._two_workers) for work in works]
        for task in running.tasks:
            self.add(task)

    def next(self, worker: object) -> Job | None:
        """The next job for a worker."""
        for task in self._waiting:
            if (call := task.next_call(worker)) is not None:
                job = Job(task, call, worker)
                if not task.waiting:
                    del self._waiting[task]
                return job
        return None


def _end(report: Report) -> Reason:
    """The reason why a call has no frame."""
    if report.end == wire.END_TIMEOUT:
        return Reason.TIMEOUT
    if report.end == wire.END_KILLED:
        return Reason.LOST
    if report.code == -signal.SIGSYS:
        return Reason.FORBIDDEN
    return Reason.CRASHED
