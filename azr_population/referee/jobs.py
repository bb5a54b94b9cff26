"""The schedule: which calls are left to run, which worker gets them, and what their outcomes are.

The outcome of a call is by definition its outcome in a separate child under the full deadline.
Batches only save work: a call that does not end normally in a batch is made again, alone.
"""

from __future__ import annotations

import bisect
import signal
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from .limits import RefereeSettings
from .sandbox import literal, wire
from .verdicts import Reason
from .zygote_handle import Report

_REASONS = {
    wire.OK: Reason.OK,
    wire.SYNTAX_ERROR: Reason.SYNTAX_ERROR,
    wire.BANNED: Reason.BANNED,
    wire.NO_FUNCTION: Reason.NO_FUNCTION,
    wire.ERROR: Reason.ERROR,
    wire.MEMORY: Reason.MEMORY,
    wire.NOT_LITERAL: Reason.NOT_LITERAL,
    wire.TOO_LARGE: Reason.TOO_LARGE,
    wire.BAD_INPUT: Reason.BAD_INPUT,
    wire.INPUT_NOT_LITERAL: Reason.NOT_LITERAL,
    wire.INPUT_TOO_LARGE: Reason.TOO_LARGE,
    wire.ALONE: Reason.TAMPERED,  # a child with one call has no reason to report this
}

_MAX_CALLS = 256  # in one job
_CRASHES = 3  # until a crash counts
_BATCH_PART = 0.125  # share of the deadline for a call in a batch; then it is made again, alone
_INCONCLUSIVE = (wire.ALONE, wire.MEMORY)


class CallOutcome(NamedTuple):
    """The outcome of one call; `text` is the output's literal if the reason is OK."""

    reason: Reason
    text: str = ""


_Answer = TypeVar("_Answer")
Plan = Generator[Sequence[wire.SandboxWork], Sequence[Sequence[CallOutcome]], _Answer]
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

    number: int
    work: wire.SandboxWork
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
    tries: int = 0
    crashes: Counter[int] = field(default_factory=Counter)
    """Crashes by call."""

    def __post_init__(self) -> None:
        self.outcomes = [None] * len(self.work.calls)

    def believe_crash(self, call: int) -> bool:
        """Counts a crash; returns whether it is the third. A single fault may be a signal from
        another process."""
        self.crashes[call] += 1
        return self.crashes[call] >= _CRASHES

    @property
    def done(self) -> bool:
        return None not in self.outcomes and not self.in_flight

    @property
    def waits(self) -> bool:
        """Whether it has calls that no worker is making."""
        return any(
            outcome is None and call not in self.in_flight
            for call, outcome in enumerate(self.outcomes)
        )

    @cached_property
    def size(self) -> int:
        """An upper bound of its bytes in a job."""
        work = self.work
        texts = (work.source, *work.imports)
        calls = sum(len(call.arguments) for call in work.calls)
        return 4 * (sum(map(len, texts)) + calls) + 64 * (len(texts) + len(work.calls) + 1)

    def next_calls(self, worker: object) -> list[int]:
        """The calls that this worker may make now: all, or one if they are made alone."""
        calls = self.work.calls
        ready = len(calls)
        if self.alone:  # required calls first: a failure settles the others
            ready = 1 if self.outcomes[0] is None else len(calls)
            if (
                ready > self.work.required_calls
                and None in self.outcomes[: self.work.required_calls]
            ):
                ready = max(self.work.required_calls, 1)
        waiting = [n for n in range(ready) if self.outcomes[n] is None and n not in self.in_flight]
        if self.two_workers:
            first = [n for n in waiting if not calls[n].again]
            waiting = first or (waiting if self.home is not worker else [])
        return waiting[:1] if self.alone else waiting

    def book(self, call: int, outcome: CallOutcome) -> None:
        """Stores a call's outcome. A required call that fails settles the calls behind it but none
        before it: which of two failures is reported must not depend on timing."""
        self.in_flight.discard(call)
        if self.outcomes[call] is None:
            self.outcomes[call] = outcome
            if call < self.work.required_calls and outcome.reason is not Reason.OK:
                self.fill(outcome, call)

    def fill(self, outcome: CallOutcome, behind: int = 0) -> None:
        """Gives this outcome to every call from `behind` on that has none."""
        for call in range(behind, len(self.outcomes)):
            self.outcomes[call] = self.outcomes[call] or outcome

    def results(self) -> list[CallOutcome]:
        """The outcomes of a finished work."""
        return [outcome for outcome in self.outcomes if outcome is not None]


class Job:
    """One message to a worker: calls of one work, or of several that share a child."""

    def __init__(
        self, parts: Sequence[tuple[PendingWork, Sequence[int]]], worker: object, resident: bool
    ) -> None:
        self.parts = parts
        self.resident = resident
        self.order = [(task, call) for task, calls in parts for call in calls]
        self.single = len(self.order) == 1 and not resident
        """Whether it is a single call in a separate child, so that its outcome is final."""
        for task, calls in parts:
            task.in_flight.update(calls)
            task.home = task.home or worker

    @property
    def tasks(self) -> list[PendingWork]:
        return [task for task, _ in self.parts]

    def packed(self, settings: RefereeSettings) -> bytes:
        """The bytes to send."""
        works = []
        for task, numbers in self.parts:
            calls = tuple(task.work.calls[number] for number in numbers)
            required = sum(number < task.work.required_calls for number in numbers)
            work = task.work._replace(calls=calls, required_calls=required)
            works.append(_bare(work) if self.single else work)
        deadline = settings.timeout
        in_batch = min(_BATCH_PART * deadline, settings.cpu_seconds or deadline)
        return wire.pack(works, deadline if self.single else in_batch, deadline, self.resident)

    def give_up(self) -> None:
        """Returns its calls to the schedule."""
        for task, call in self.order:
            task.in_flight.discard(call)

    def believe_crash(self) -> bool:
        """Whether a crash in a separate child counts as the call's outcome."""
        task, call = self.order[0]
        return not self.single or task.believe_crash(call)

    def take(self, report: Report) -> bool:
        """Stores what a child reported; False if our code cannot have written it."""
        self.give_up()
        frames = _sound(report.frames, len(self.order))
        if self.single:
            task, call = self.order[0]
            if frames is None:
                outcome = CallOutcome(Reason.TAMPERED)
            elif frames:
                outcome = CallOutcome(_REASONS[frames[0][0]], frames[0][1])
            else:
                outcome = CallOutcome(_end(report))
            task.book(call, outcome)
            return frames is not None
        if frames is None:
            for task in self.tasks:
                task.alone = True
            return False
        for (task, call), (status, text) in zip(self.order, frames, strict=False):
            if status in _INCONCLUSIVE:
                task.alone = True
            else:
                task.book(call, CallOutcome(_REASONS[status], text))
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
        self._works = 0
        self._tasks: list[PendingWork] = []  # the oldest first

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, plan: Plan[Any]) -> None:
        """Starts a plan."""
        self.started += 1
        self._go_on(_Running(self.started - 1, plan), None)

    def add(self, task: PendingWork) -> None:
        """Queues a work that has calls to make; continues its plan if it is done."""
        self._wait(task)
        running = task.plan
        if running and running.tasks and all(each.done for each in running.tasks):
            self._go_on(running, [each.results() for each in running.tasks])

    def _go_on(self, running: _Running, results: list[list[CallOutcome]] | None) -> None:
        """Advances a plan to its next works or its answer."""
        while True:
            running.tasks = []
            try:
                works = running.plan.send(results)  # type: ignore[arg-type]  # None starts it
            except StopIteration as end:
                self.answers[running.number] = end.value
                return
            for work in works:
                task = PendingWork(self._works, work, running, self._two_workers)
                running.tasks.append(task)
                self._wait(task)
                self._works += 1
            if not all(task.done for task in running.tasks):
                return
            results = [task.results() for task in running.tasks]

    def _wait(self, task: PendingWork) -> None:
        task.alone |= task.work.alone or self._settings.child_per_call or task.tries > 1
        at = bisect.bisect_left(self._tasks, task.number, key=lambda task: task.number)
        if self._tasks[at : at + 1] == [task]:
            del self._tasks[at]
        if task.waits:
            self._tasks.insert(at, task)

    def next(self, worker: object) -> Job | None:
        """The next job for a worker. Works that may share a child are combined, but not so many
        that other workers would be idle."""
        most = min(self._settings.share, -(-len(self._tasks) // self._workers))
        parts: list[tuple[PendingWork, list[int]]] = []
        count = size = 0
        for task in self._tasks:
            calls = task.next_calls(worker)
            if not calls:
                continue
            if task.alone or self._isolated(task):
                if not parts:
                    parts.append((task, calls))
                    break
                continue
            count, size = count + len(calls), size + task.size
            if parts and (count > _MAX_CALLS or size > wire.INBOX_BYTES):
                break
            parts.append((task, calls))
            if len(parts) >= most:
                break
        if not parts:
            return None
        first = parts[0][0]
        job = Job(parts, worker, resident=not (first.alone or self._isolated(first)))
        started_now = {id(task) for task, _ in parts if not task.waits}
        self._tasks = [task for task in self._tasks if id(task) not in started_now]
        return job

    def _isolated(self, task: PendingWork) -> bool:
        return self._settings.share == 1 or task.work.isolated or task.size > wire.INBOX_BYTES


def _bare(work: wire.SandboxWork) -> wire.SandboxWork:
    """A work of one call without a trace of its purpose.

    The program may read everything in its child, so validating and judging with the same values
    must send the same bytes.
    """
    (call,) = work.calls
    if call.kind in (wire.EXPRESSION, wire.LITERAL):
        written = canonical(call.arguments)
        if written is not None:
            call = call._replace(kind=wire.LITERAL, arguments=written)
    return work._replace(calls=(call,), required_calls=0)


def canonical(text: str) -> str | None:
    """An argument list of literals in the form of `literal.write`; None for any other."""
    try:
        return literal.write_arguments(*literal.parse_arguments(text))
    except literal.NotLiteral:
        return None


def _sound(data: bytes, calls: int) -> list[tuple[int, str]] | None:
    """(status, text) of the calls that ended; None if our code cannot have written it."""
    frames = wire.frames(data)
    if frames is None or [call for call, _, _ in frames] != list(range(len(frames))):
        return None
    return [(status, text) for _, status, text in frames] if len(frames) <= calls else None


def _end(report: Report) -> Reason:
    """The reason why the current call has no frame."""
    if report.end == wire.END_TIMEOUT or report.code in (-signal.SIGXCPU, -signal.SIGPROF):
        return Reason.TIMEOUT
    if report.end == wire.END_KILLED:
        return Reason.LOST
    if report.code == -signal.SIGSYS:
        return Reason.FORBIDDEN
    return Reason.CRASHED
