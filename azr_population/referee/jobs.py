"""Tasks on their way through the workers: what is left to run, and what has come of them."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import NamedTuple

from .reasons import Reason
from .sandbox import wire
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


_SHARED_PART = 0.125  # of the deadline, for tasks that share a child; then each goes alone
_TO_RUN_ALONE = (wire.ALONE, wire.MEMORY)


class Outcome(NamedTuple):
    """What came of one call: `text` is the output's literal when the reason is OK."""

    reason: Reason
    text: str = ""


@dataclass
class Task:
    """A piece of work on its way: outcomes so far, budget left, tries spent."""

    number: int
    work: wire.Work
    budget: float
    alone: bool
    outcomes: list[Outcome] = field(default_factory=list)
    tries: int = 0

    @property
    def done(self) -> bool:
        return len(self.outcomes) >= len(self.work.calls)

    def rest(self) -> wire.Work:
        """The work without the calls that have their outcomes."""
        rest = self.work.calls[len(self.outcomes) :]
        return self.work if len(rest) == len(self.work.calls) else self.work._replace(calls=rest)

    def fill(self, outcome: Outcome) -> None:
        """Give every call that has no outcome yet this one."""
        self.outcomes += [outcome] * (len(self.work.calls) - len(self.outcomes))

    def take(self, report: Report) -> None:
        """Book what a child left; calls behind one that hung or crashed stay open."""
        self.budget -= report.microseconds / 1e6
        frames = wire.frames(report.frames)
        if frames is None:
            return self.fill(Outcome(Reason.TAMPERED))
        missing = len(self.work.calls) - len(self.outcomes)
        booked: list[Outcome] = []
        for position, (call, status, text) in enumerate(frames):
            outcome = Outcome(_REASONS[status], text)
            if call == wire.PROGRAM and position == len(frames) - 1 and status != wire.OK:
                self.outcomes += booked
                return self.fill(outcome)
            if call != position or position >= missing:
                return self.fill(Outcome(Reason.TAMPERED))
            booked.append(outcome)
        self.outcomes += booked
        if not self.done:
            self.outcomes.append(Outcome(_end(report)))
            if self.budget <= 0.001:
                self.fill(Outcome(Reason.TIMEOUT))
        return None


@dataclass
class Job:
    """The tasks that go to a worker together: one, or several that share a child."""

    tasks: list[Task]

    def packed(self, deadline: float) -> bytes:
        if len(self.tasks) == 1:
            return wire.pack([self.tasks[0].rest()], self.tasks[0].budget)
        return wire.pack([task.work for task in self.tasks], _SHARED_PART * deadline)

    def take(self, report: Report) -> None:
        """Book what a child left. Whoever did not come to a plain end is to run alone."""
        if len(self.tasks) == 1:
            return self.tasks[0].take(report)
        frames = wire.frames(report.frames) if report.end != wire.END_SIGNAL else None
        frames = frames or []
        if any(call != position for position, (call, _, _) in enumerate(frames)):
            frames = []
        at = 0
        for task in self.tasks:
            count = len(task.work.calls)
            mine, at = frames[at : at + count], at + count
            task.alone = True
            if len(mine) == count and all(s not in _TO_RUN_ALONE for _, s, _ in mine):
                task.outcomes = [Outcome(_REASONS[status], text) for _, status, text in mine]
        return None


def _end(report: Report) -> Reason:
    """Why the call in flight has no frame."""
    if report.end == wire.END_TIMEOUT or report.code in (-signal.SIGXCPU, -signal.SIGPROF):
        return Reason.TIMEOUT
    if report.code == -signal.SIGSYS:
        return Reason.FORBIDDEN
    return Reason.CRASHED
