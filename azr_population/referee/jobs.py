"""Tasks on their way through the workers: what is left to run, and what has come of them.

What an execution comes to is what it comes to in a child of its own, under the full deadline. A
child that makes several calls only saves work: whatever does not end as it should in company is
done again, alone.
"""

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from .reasons import Reason
from .sandbox import literal, wire
from .settings import RefereeSettings
from .worker import Report

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
    wire.ALONE: Reason.TAMPERED,  # nobody asked: a child alone has no reason to say so
}

_COMPANY_PART = 0.125  # of the deadline, for a call in company; then it is made again, alone
_INCONCLUSIVE = (wire.ALONE, wire.MEMORY)


class Outcome(NamedTuple):
    """What came of one call: `text` is the output's literal when the reason is OK."""

    reason: Reason
    text: str = ""


@dataclass(eq=False)
class PendingWork:
    """A piece of work on its way, and the outcomes of its calls so far."""

    number: int
    work: wire.Work
    two_workers: bool = False
    """Calls that are made `again` go to another worker than the others did."""
    alone: bool = False
    """Each of its calls that has no outcome yet gets a child of its own."""
    outcomes: list[Outcome | None] = field(default_factory=list)
    in_flight: set[int] = field(default_factory=set)
    """The calls that are being made."""
    home: object = None
    """Whoever made the first call."""
    tries: int = 0

    def __post_init__(self) -> None:
        self.outcomes = [None] * len(self.work.calls)

    @property
    def done(self) -> bool:
        return None not in self.outcomes and not self.in_flight

    @property
    def waits(self) -> bool:
        """Whether it has calls that nobody is making."""
        return any(
            outcome is None and call not in self.in_flight
            for call, outcome in enumerate(self.outcomes)
        )

    @cached_property
    def size(self) -> int:
        """No less than the bytes that it takes in a job."""
        work = self.work
        texts = (work.source, *work.imports, *work.banned, *work.statements)
        calls = sum(len(call.arguments) for call in work.calls)
        return 4 * (sum(map(len, texts)) + calls) + 64 * (len(texts) + len(work.calls) + 1)

    def next_calls(self, worker: object) -> list[int]:
        """The calls that this worker may make now: all it can, or one if they are made alone."""
        calls = self.work.calls
        ready = len(calls)
        if self.alone:  # those that may settle the others go ahead of them
            ready = 1 if self.outcomes[0] is None else len(calls)
            if ready > self.work.gate and None in self.outcomes[: self.work.gate]:
                ready = max(self.work.gate, 1)
        waiting = [n for n in range(ready) if self.outcomes[n] is None and n not in self.in_flight]
        if self.two_workers:
            first = [n for n in waiting if not calls[n].again]
            waiting = first or (waiting if self.home is not worker else [])
        return waiting[:1] if self.alone else waiting

    def book(self, call: int, outcome: Outcome) -> None:
        """Take a call's outcome. At the gate it settles those behind it, and none before it: which
        of two failures is reported must not depend on which came first."""
        self.in_flight.discard(call)
        if self.outcomes[call] is None:
            self.outcomes[call] = outcome
            if call < self.work.gate and outcome.reason is not Reason.OK:
                self.fill(outcome, call)

    def fill(self, outcome: Outcome, behind: int = 0) -> None:
        """Give every call that has no outcome yet this one, from some call on."""
        for call in range(behind, len(self.outcomes)):
            self.outcomes[call] = self.outcomes[call] or outcome

    def results(self) -> list[Outcome]:
        """The outcomes of a task that is done."""
        return [outcome for outcome in self.outcomes if outcome is not None]


class Job:
    """What goes to a worker at once: calls of one task, or of several that share a child."""

    def __init__(
        self, parts: Sequence[tuple[PendingWork, Sequence[int]]], worker: object, resident: bool
    ) -> None:
        self.parts = parts
        self.resident = resident
        self.order = [(task, call) for task, calls in parts for call in calls]
        self.single = len(self.order) == 1 and not resident
        """Alone in its child: whatever comes of it is its outcome."""
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
            gate = sum(number < task.work.gate for number in numbers)
            work = task.work._replace(calls=calls, gate=gate)
            works.append(_bare(work) if self.single else work)
        deadline = settings.deadline
        in_company = min(_COMPANY_PART * deadline, settings.cpu_seconds or deadline)
        return wire.pack(works, deadline if self.single else in_company, deadline, self.resident)

    def give_up(self) -> None:
        """It came to nothing; its calls are to be made again."""
        for task, call in self.order:
            task.in_flight.discard(call)

    def take(self, report: Report) -> bool:
        """Book what a child left; False where it is not what our code writes."""
        self.give_up()
        frames = _sound(report.frames, len(self.order))
        if self.single:
            task, call = self.order[0]
            if frames is None:
                outcome = Outcome(Reason.TAMPERED)
            elif frames:
                outcome = Outcome(_REASONS[frames[0][0]], frames[0][1])
            else:
                outcome = Outcome(_end(report))
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
                task.book(call, Outcome(_REASONS[status], text))
        if len(frames) < len(self.order):  # here it ended; those behind have not begun
            self.order[len(frames)][0].alone = True
        return True


def _bare(work: wire.Work) -> wire.Work:
    """A work of one call, without a trace of what the call is made for.

    Its child will find nothing else, and its program may look at all of it: to validate and to
    judge by the same values must take the same bytes.
    """
    (call,) = work.calls
    if call.kind in (wire.EXPRESSION, wire.LITERAL):
        written = canonical(call.arguments)
        if written is not None:
            call = call._replace(kind=wire.LITERAL, arguments=written)
    if call.kind != wire.SCREEN:
        work = work._replace(banned=(), statements=())
    return work._replace(calls=(call,), gate=0)


def canonical(text: str) -> str | None:
    """An argument list of literals as `literal.write` writes it; None for any other."""
    try:
        return literal.write_arguments(*literal.parse_arguments(text))
    except literal.NotLiteral:
        return None


def _sound(data: bytes, calls: int) -> list[tuple[int, str]] | None:
    """(status, text) of each of the first calls; None where that is not what a child wrote."""
    frames = wire.frames(data)
    if frames is None or [call for call, _, _ in frames] != list(range(len(frames))):
        return None
    return [(status, text) for _, status, text in frames] if len(frames) <= calls else None


def _end(report: Report) -> Reason:
    """Why the call in flight has no frame."""
    if report.end == wire.END_TIMEOUT or report.code in (-signal.SIGXCPU, -signal.SIGPROF):
        return Reason.TIMEOUT
    if report.code == -signal.SIGSYS:
        return Reason.FORBIDDEN
    return Reason.CRASHED
