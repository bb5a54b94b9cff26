"""The schedule: which calls are left to run, which worker gets them, and what their outcomes are.

The outcome of a call is by definition its outcome in a separate child under the full deadline.
Batches only save work: a call that does not end normally in a batch is made again, alone.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from .limits import RefereeSettings
from .sandbox import literal, wire
from .sandbox.wire import SandboxWork
from .verdicts import Reason
from .zygote_handle import Report

_MAX_CALLS = 256  # in one job
_LOSSES = 10  # of a worker, until a work counts as lost
_KILLS = 30  # of a child, until a work counts as lost
_CRASHES = 3  # until a crash counts: a single fault may be a signal from another process
_BATCH_PART = 0.125  # share of the deadline for a call in a batch; then it is made again, alone


class CallOutcome(NamedTuple):
    """The outcome of one call; `text` is the output's literal if the reason is OK."""

    reason: Reason
    text: str = ""

    @classmethod
    def read(cls, status: int, text: str) -> CallOutcome:
        """The outcome that a child reported."""
        if status == wire.ALONE:  # a child with one call has no reason to report this
            return cls(Reason.TAMPERED)
        return cls(Reason(wire.STATUSES[status]), text)


_Answer = TypeVar("_Answer")
Outcomes = list[CallOutcome]
Plan = Generator[Sequence[SandboxWork], Sequence[Outcomes], _Answer]
"""A generator that answers one question: it yields works, receives the outcomes of their calls, and
returns the answer."""


@dataclass(eq=False)
class _Running:
    """A plan and the works whose outcomes it waits for."""

    number: int
    plan: Plan[Any]
    tasks: list[PendingWork] = field(default_factory=list)


@dataclass(eq=False)
class PendingWork:
    """A work with the outcomes of its calls so far."""

    work: SandboxWork
    plan: _Running | None = None
    """The plan that waits for it."""
    two_workers: bool = False
    """Calls with `again` go to another worker than the others."""
    alone: bool = False
    """Each call without an outcome gets a separate child."""
    outcomes: list[CallOutcome | None] = field(default_factory=list)
    in_flight: set[int] = field(default_factory=set)
    """Calls that a worker is making."""
    home: object = None
    """The worker of the first call."""
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

    @cached_property
    def size(self) -> int:
        """An upper bound of its bytes in a job."""
        work = self.work
        texts = (work.source, *work.imports)
        calls = sum(len(call.arguments) for call in work.calls)
        return 4 * (sum(map(len, texts)) + calls) + 64 * (len(texts) + len(work.calls) + 1)

    def next_calls(self, worker: object) -> list[int]:
        """The calls that this worker may make now: all, or one if they are made alone."""
        waiting = self.waiting
        if self.two_workers:
            first = [n for n in waiting if not self.work.calls[n].again]
            waiting = first or (waiting if self.home is not worker else [])
        if not self.alone:
            return waiting
        # The first goes ahead: its failure often settles the others.
        return [n for n in waiting[:1] if n == 0 or self.outcomes[0]]

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
    """One message to a worker: calls of one work, or of several that share a child."""

    def __init__(
        self, parts: Sequence[tuple[PendingWork, Sequence[int]]], worker: object, resident: bool
    ) -> None:
        self.parts = parts
        self.resident = resident
        self.tasks = [task for task, _ in parts]
        self.order = [(task, call) for task, calls in parts for call in calls]
        self.single = len(self.order) == 1 and not resident
        """Whether it is a single call in a separate child, so that its outcome is final."""
        for task, calls in parts:
            task.in_flight.update(calls)
            task.home = task.home or worker

    def packed(self, settings: RefereeSettings) -> bytes:
        """The bytes to send."""
        works = [
            task.work._replace(calls=tuple(task.work.calls[number] for number in numbers))
            for task, numbers in self.parts
        ]
        deadline = settings.timeout
        if self.single:
            return wire.pack([_bare(works[0])], deadline, deadline)
        in_batch = min(_BATCH_PART * deadline, settings.cpu_seconds or deadline)
        return wire.pack(works, in_batch, deadline, self.resident)

    def finish(self, report: Report | None) -> bool:
        """Stores what a child reported; calls without an outcome are made again. False if the
        worker is lost (None) or our code cannot have written the report."""
        for task, call in self.order:
            task.in_flight.discard(call)
        first, call = self.order[0]
        if report is None:
            first.losses += 1
            if first.losses >= _LOSSES:
                first.fill(CallOutcome(Reason.LOST))
            return False
        if report.end == wire.END_KILLED and first.kills < _KILLS:
            first.kills += 1
            return True
        frames = wire.frames(report.frames, len(self.order))
        if not self.single:
            return self._book(frames)
        if report.end == wire.END_SIGNAL:
            first.crashes[call] += 1
            if first.crashes[call] < _CRASHES:
                return True
        if frames is None:
            first.book(call, CallOutcome(Reason.TAMPERED))
        elif frames:
            first.book(call, CallOutcome.read(*frames[0]))
        else:
            first.book(call, CallOutcome(_end(report)))
        return frames is not None

    def _book(self, frames: list[tuple[int, str]] | None) -> bool:
        """Stores what is conclusive in a batch; the rest is made again alone."""
        if frames is None:
            for task in self.tasks:
                task.alone = True
            return False
        for (task, call), (status, text) in zip(self.order, frames, strict=False):
            if status in (wire.ALONE, wire.MEMORY):
                task.alone = True
            else:
                task.book(call, CallOutcome.read(status, text))
        if len(frames) < len(self.order):  # the child ended in this call; later ones did not begin
            self.order[len(frames)][0].alone = True
        return True


class WorkSchedule:
    """Running plans, their works that wait for a worker, and the choice of the next job.

    `answers` are the answers of finished plans by number: 0, 1, ...
    """

    def __init__(self, settings: RefereeSettings, workers: int, two_workers: bool = False) -> None:
        self.answers: dict[int, Any] = {}
        self.started = 0
        self._settings = settings
        self._workers = workers
        self._two_workers = two_workers
        self._waiting: dict[PendingWork, None] = {}  # in the order in which they began to wait

    def __len__(self) -> int:
        return len(self._waiting)

    def start(self, plan: Plan[Any]) -> None:
        """Starts a plan."""
        self.started += 1
        self._advance(_Running(self.started - 1, plan), None)

    def add(self, task: PendingWork) -> None:
        """Queues a work that has calls to make; continues its plan if it is done."""
        task.alone |= task.work.alone or self._settings.child_per_call
        task.alone |= task.losses + task.kills > 1
        if task.waiting:
            self._waiting[task] = None
        else:
            self._waiting.pop(task, None)
        running = task.plan
        if running and running.tasks and all(each.done for each in running.tasks):
            self._advance(running, [each.outcomes for each in running.tasks])

    def _advance(self, running: _Running, results: Sequence[Any] | None) -> None:
        """Advances a plan to its next works or its answer."""
        running.tasks = []
        try:
            works = running.plan.send(results)  # type: ignore[arg-type]  # None starts it
        except StopIteration as end:
            self.answers[running.number] = end.value
            return
        running.tasks = [PendingWork(work, running, self._two_workers) for work in works]
        for task in running.tasks:
            self.add(task)

    def next(self, worker: object) -> Job | None:
        """The next job for a worker. Works that may share a child are combined, but not so many
        that other workers would be idle."""
        most = min(self._settings.share, -(-len(self._waiting) // self._workers))
        parts: list[tuple[PendingWork, list[int]]] = []
        count = size = 0
        for task in self._waiting:
            isolated = self._isolated(task)
            if (parts and isolated) or not (calls := task.next_calls(worker)):
                continue
            count, size = count + len(calls), size + task.size
            if parts and (count > _MAX_CALLS or size > wire.INBOX_BYTES):
                break
            parts.append((task, calls))
            if isolated or len(parts) >= most:
                break
        if not parts:
            return None
        job = Job(parts, worker, resident=not self._isolated(parts[0][0]))
        for task in job.tasks:
            if not task.waiting:
                del self._waiting[task]
        return job

    def _isolated(self, task: PendingWork) -> bool:
        """Whether it shares no child with others."""
        too_large = task.size > wire.INBOX_BYTES
        return task.alone or task.work.isolated or too_large or self._settings.share == 1


def _bare(work: SandboxWork) -> SandboxWork:
    """A work of one call without a trace of its purpose.

    The program may read everything in its child, so validating and judging with the same values
    must send the same bytes.
    """
    (call,) = work.calls
    if call.kind in (wire.EXPRESSION, wire.LITERAL):
        written = literal.canonical_arguments(call.arguments)
        if written is not None:
            call = call._replace(kind=wire.LITERAL, arguments=written)
    return work._replace(calls=(call,), stop_at_failure=False)


def _end(report: Report) -> Reason:
    """The reason why the current call has no frame."""
    if report.end == wire.END_TIMEOUT:
        return Reason.TIMEOUT
    if report.end == wire.END_KILLED:
        return Reason.LOST
    if report.code == -signal.SIGSYS:
        return Reason.FORBIDDEN
    return Reason.CRASHED
