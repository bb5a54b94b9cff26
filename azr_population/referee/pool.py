"""Spreads jobs over the workers, brings results back in order, and outlives lost workers."""

from __future__ import annotations

import os
import selectors
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from azr_population.errors import UserError

from .reasons import Reason
from .sandbox import wire
from .settings import RefereeSettings
from .worker import START_SECONDS, Report, Worker, now

_QUEUED_PER_WORKER = 2  # one runs, one waits in the socket, so that a zygote never idles
_WINDOW_PER_WORKER = 256  # how far results may run ahead of the slowest task
_GRACE_SECONDS = 5.0  # beyond the deadline, before a silent zygote counts as hung
_TRIES = 10  # of one task, or of starting one worker

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


_SHARED_CALLS = 256
_SHARED_PART = 0.125  # of the deadline, for tasks that share a child; then each goes alone
_TO_RUN_ALONE = (wire.ALONE, wire.MEMORY)


class Outcome(NamedTuple):
    """What came of one call: `text` is the output's literal when the reason is OK."""

    reason: Reason
    text: str = ""


@dataclass
class _Task:
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
class _Job:
    """The tasks that go to a worker together: one, or several that share a child."""

    tasks: list[_Task]

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
    if report.end == wire.END_TIMEOUT or report.code == -signal.SIGXCPU:
        return Reason.TIMEOUT
    if report.code == -signal.SIGSYS:
        return Reason.FORBIDDEN
    return Reason.CRASHED


@dataclass
class _Seat:
    """A worker's place: it stays when the worker in it is replaced."""

    worker: Worker
    jobs: deque[_Job] = field(default_factory=deque)
    since: float = 0.0
    """When its first job became the first, or when its worker was started."""
    ready: bool = False
    watched: bool = False
    starts: int = 0


class Pool:
    """Workers and the loop that feeds them. Not to be shared between processes."""

    def __init__(self, settings: RefereeSettings) -> None:
        self.settings = settings
        self.layers: list[tuple[str, bool, str]] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._seats: list[_Seat] = []
        self._start()

    def _start(self) -> None:
        self._selector = selectors.DefaultSelector()
        try:
            self._seats = [_Seat(Worker(self.settings)) for _ in range(self.settings.worker_count)]
            for seat in self._seats:
                self._admit(seat, seat.worker.greet())
                self._watch(seat)
        except BaseException:
            self.close()
            raise

    def _watch(self, seat: _Seat) -> None:
        self._selector.register(seat.worker.sock, selectors.EVENT_READ, seat)
        seat.watched = True

    def _admit(self, seat: _Seat, hello: dict[str, Any]) -> None:
        """Let a worker that has said what confines it take tasks."""
        self.layers = [tuple(layer) for layer in hello["layers"]]
        confined = any(name == "seccomp" and in_force for name, in_force, _ in self.layers)
        if not confined and not self.settings.accept_unconfined:
            detail = next((d for name, _, d in self.layers if name == "seccomp"), "no seccomp")
            raise UserError(
                f"referee: this platform cannot confine programs ({detail}); "
                "referee.accept_unconfined=true runs model-written code as you, at your own risk"
            )
        seat.ready, seat.starts = True, 0

    def close(self) -> None:
        """Kill all workers. Idempotent."""
        if os.getpid() == self._owner:
            for seat in self._seats:
                seat.worker.close()
        self._seats = []
        self._selector.close()

    def run(self, works: Iterable[wire.Work]) -> list[list[Outcome]]:
        """The outcomes of all calls of each work, in order."""
        return list(self.stream(works))

    def stream(self, works: Iterable[wire.Work | None]) -> Iterator[list[Outcome]]:
        """Yield the outcomes of each work in the order the works come; reads ahead a bounded way.

        A None among the works means "nothing yet". Only one stream runs at a time; another
        thread's waits.
        """
        if os.getpid() != self._owner:  # forked: those workers are the parent's
            self._owner, self._lock = os.getpid(), threading.Lock()
            for seat in self._seats:
                seat.worker.sock.close()
            self._start()
        with self._lock:
            if not self._seats:
                raise ValueError("the referee is closed")
            yield from self._stream(iter(works))

    def _stream(self, works: Iterator[wire.Work | None]) -> Iterator[list[Outcome]]:
        waiting: deque[_Task] = deque()
        finished: dict[int, list[Outcome]] = {}
        taken = given = 0
        window = _WINDOW_PER_WORKER * len(self._seats)
        ahead = len(self._seats) * self.settings.share
        exhausted = False
        try:
            while True:
                while not exhausted and len(waiting) < ahead and taken - given < window:
                    try:
                        work = next(works)
                    except StopIteration:
                        exhausted = True
                        break
                    if work is None:
                        break
                    alone = work.alone or self.settings.share == 1
                    task = _Task(taken, work, self.settings.deadline, alone)
                    taken += 1
                    if task.done:
                        finished[task.number] = []
                    else:
                        waiting.append(task)
                while given in finished:
                    yield finished.pop(given)
                    given += 1
                if exhausted and given == taken:
                    return
                self._feed(waiting)
                self._collect(waiting, finished)
        finally:
            for seat in self._seats:  # an abandoned stream leaves no half-done work behind
                if seat.jobs:
                    self._replace(seat)
                    seat.jobs.clear()

    def _feed(self, waiting: deque[_Task]) -> None:
        for depth in range(_QUEUED_PER_WORKER):
            for seat in self._seats:
                if waiting and seat.ready and len(seat.jobs) <= depth:
                    job = self._job(waiting)
                    if not seat.jobs:
                        seat.since = now()
                    seat.jobs.append(job)
                    seat.worker.send(job.packed(self.settings.deadline))

    def _job(self, waiting: deque[_Task]) -> _Job:
        """The next task; with those behind it, where they may share a child."""
        job = _Job([waiting.popleft()])
        calls = len(job.tasks[0].work.calls)
        while (
            waiting
            and not (job.tasks[0].alone or waiting[0].alone)
            and len(job.tasks) < self.settings.share
            and calls + len(waiting[0].work.calls) <= _SHARED_CALLS
        ):
            job.tasks.append(waiting.popleft())
            calls += len(job.tasks[-1].work.calls)
        return job

    def _collect(self, waiting: deque[_Task], finished: dict[int, list[Outcome]]) -> None:
        """Wait for reports (or for a hung worker) and book them."""
        busy = [seat for seat in self._seats if seat.jobs or not seat.ready]
        if not busy:
            return
        backlog = False
        for seat in busy:
            if seat.worker.outgoing:
                seat.worker.push()
                backlog = backlog or bool(seat.worker.outgoing)
        patience = min(seat.since + self._limit(seat) for seat in busy) - now()
        for key, _ in self._selector.select(0.001 if backlog else max(patience, 0)):
            self._read(key.data, waiting, finished)
        for seat in self._seats:
            if (seat.jobs or not seat.ready) and now() - seat.since > self._limit(seat):
                self._recover(seat, waiting, finished)

    def _limit(self, seat: _Seat) -> float:
        """Seconds after which a silent worker counts as hung."""
        return self.settings.deadline + _GRACE_SECONDS if seat.ready else START_SECONDS

    def _read(self, seat: _Seat, waiting: deque[_Task], finished: dict[int, list[Outcome]]) -> None:
        if not seat.ready:
            try:
                hello = seat.worker.hello()
            except UserError:  # killed while it was starting, perhaps
                if seat.starts >= _TRIES:
                    raise
                self._replace(seat)
                return
            if hello is not None:
                self._admit(seat, hello)
            return
        reports = seat.worker.pull()
        for report in reports or ():
            if not seat.jobs:
                continue
            if report.end == wire.END_LOST:
                reports = None
                break
            job = seat.jobs.popleft()
            seat.since = now()
            if report.end == wire.END_KILLED and job.tasks[0].tries < _TRIES:
                job.tasks[0].tries += 1
            else:
                job.take(report)
            for task in reversed(job.tasks):
                if task.done:
                    finished[task.number] = task.outcomes
                else:
                    waiting.appendleft(task)
        if reports is None:
            self._recover(seat, waiting, finished)

    def _recover(
        self, seat: _Seat, waiting: deque[_Task], finished: dict[int, list[Outcome]]
    ) -> None:
        """A worker is dead, hung or out of step: a new one takes its seat, its tasks go again."""
        tasks = [task for job in seat.jobs for task in job.tasks]
        seat.jobs = deque()
        if tasks:
            tasks[0].tries += 1
            if tasks[0].tries >= _TRIES:
                lost = tasks.pop(0)
                lost.fill(Outcome(Reason.LOST))
                finished[lost.number] = lost.outcomes
        waiting.extendleft(reversed(tasks))
        self._replace(seat)

    def _replace(self, seat: _Seat) -> None:
        """Start a new worker in a seat; it takes tasks once it has greeted."""
        if seat.watched:
            self._selector.unregister(seat.worker.sock)
        seat.watched = seat.ready = False
        seat.worker.close()
        seat.worker = Worker(self.settings)
        seat.starts += 1
        seat.since = now()
        self._watch(seat)
