"""The referee: validates programs and grades answers, in batches, on all its workers.

It spreads jobs over them, brings results back in order, and outlives lost workers.
"""

import os
import selectors
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from azr_population.errors import UserError

from . import plans
from .jobs import CallOutcome, Job, Plan, WorkSchedule
from .limits import RefereeSettings
from .sandbox import wire
from .sandbox.wire import SandboxWork
from .verdicts import Execution, Grade, Judgement, Program, Question, Reason
from .zygote_handle import START_SECONDS, Worker, cannot_start, now

_QUEUED_PER_WORKER = 2  # one runs, one waits in the socket, so that a zygote never idles
_WINDOW_PER_WORKER = 256  # how far results may run ahead of the slowest task
_GRACE_SECONDS = 5.0  # beyond the deadline, before a silent zygote counts as hung
_TRIES = 10  # of one task, or of starting one worker anew
_KILLS = 30  # of one task
_STARTS = 3  # of each of the first workers

_Answer = TypeVar("_Answer")


@dataclass
class _Seat:
    """A worker's place: it stays when the worker in it is replaced."""

    worker: Worker
    jobs: deque[Job] = field(default_factory=deque)
    since: float = 0.0
    """When its first job became the first, or when its worker was started."""
    ready: bool = False
    watched: bool = False
    starts: int = 0


class Referee(AbstractContextManager["Referee"]):
    """Runs model-written Python behind walls and says what came of it.

    All calls take batches, use every worker, and return in order. Use it as a context manager, or
    `close` it; a fork of the process starts workers of its own. Raises `UserError` where the
    platform cannot confine and the settings do not accept that.
    """

    def __init__(self, settings: RefereeSettings | None = None) -> None:
        self.settings = settings or RefereeSettings()
        self.layers: list[tuple[str, bool, str]] = []
        """The layers of confinement in the workers: (name, in force, detail)."""
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._seats: list[_Seat] = []
        self._start()

    def __exit__(self, *exception: object) -> None:
        self.close()

    def check(self, programs: Sequence[Program]) -> list[Execution]:
        """Run each program twice on each of its inputs.

        An execution is valid when every output is a literal and both runs agree, the second of
        which takes place among other random numbers, at another time and at other addresses.
        """
        return list(self._stream(map(plans.check, programs)))

    def grade(self, questions: Sequence[Question]) -> list[tuple[Grade, ...]]:
        """Grade the answers of each question against the gold outputs that it carries.

        code_o executes nothing. Identical answers are executed once.
        """
        return list(self._stream(map(plans.grade, questions)))

    def judge(self, questions: Sequence[Question]) -> list[Judgement]:
        """Validate each question's program and grade its answers against what it computes."""
        return list(self.stream(questions))

    def stream(self, questions: Iterable[Question | None]) -> Iterator[Judgement]:
        """As `judge`, one by one in order, reading ahead in a bounded way.

        A None among the questions means that there is nothing to read yet: the source is asked
        again when something has been finished.
        """
        return self._stream(q if q is None else plans.judge(q) for q in questions)

    def run(self, works: Iterable[SandboxWork]) -> list[list[CallOutcome]]:
        """The outcomes of raw work for callers with their own rules: `patches.referee_executor`."""
        return list(self.outcomes(works))

    def outcomes(self, works: Iterable[SandboxWork]) -> Iterator[list[CallOutcome]]:
        """As `run`, one by one in order, reading ahead in a bounded way."""
        return self._stream(map(plans.execute, works))

    def _start(self) -> None:
        try:
            self._selector = selectors.DefaultSelector()
        except OSError as error:
            raise cannot_start(error) from error
        self._seats = []
        try:
            for _ in range(self.settings.worker_count):
                self._seats.append(_Seat(Worker(self.settings)))
            self._greet(self._seats)
            if self._two_workers and len(self._seats) == 1:
                self._seats.append(_Seat(Worker(self.settings)))
                self._greet(self._seats[1:])
        except BaseException:
            self.close()
            raise

    @property
    def _two_workers(self) -> bool:
        """Whether a second run needs another worker, to be at other addresses."""
        return not any(name == "fixed addresses" and on for name, on, _ in self.layers)

    def _greet(self, seats: Sequence[_Seat]) -> None:
        """Wait until each worker is warm; one that has died meanwhile is tried again."""
        for seat in seats:
            for tries_left in reversed(range(_STARTS)):
                try:
                    self._admit(seat, seat.worker.greet())
                    break
                except UserError:
                    if not tries_left:
                        raise
                    seat.worker = Worker(self.settings)
            self._watch(seat)

    def _watch(self, seat: _Seat) -> None:
        self._selector.register(seat.worker.sock, selectors.EVENT_READ, seat)
        seat.watched = True

    def _admit(self, seat: _Seat, hello: dict[str, Any]) -> None:
        """Let a worker that has said what confines it take tasks."""
        self.layers = [tuple(layer) for layer in hello["layers"]]
        confined = any(name == "seccomp" and in_force for name, in_force, _ in self.layers)
        if not confined and not self.settings.allow_unsandboxed:
            detail = next((d for name, _, d in self.layers if name == "seccomp"), "no seccomp")
            raise UserError(
                f"referee: this platform cannot confine programs ({detail}); "
                "referee.allow_unsandboxed=true runs model-written code as you, at your own risk"
            )
        seat.ready, seat.starts = True, 0

    def close(self) -> None:
        """Kill all workers. Idempotent."""
        if os.getpid() == self._owner:
            for seat in self._seats:
                seat.worker.close()
        self._seats = []
        self._selector.close()

    def _stream(self, plans: Iterable[Plan[_Answer] | None]) -> Iterator[_Answer]:
        """Yield the answer of each plan in the order the plans come; reads ahead a bounded way.

        A None among the plans means "nothing yet". Only one stream runs at a time; another
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
            yield from self._answers(iter(plans))

    def _answers(self, plans: Iterator[Plan[_Answer] | None]) -> Iterator[_Answer]:
        schedule = WorkSchedule(self.settings, len(self._seats), self._two_workers)
        sent = 0
        window = _WINDOW_PER_WORKER * len(self._seats)
        ahead = _QUEUED_PER_WORKER * len(self._seats) * (self.settings.share + 1)
        exhausted = False
        try:
            while True:
                while not exhausted and len(schedule) < ahead and schedule.started - sent < window:
                    try:
                        plan = next(plans)
                    except StopIteration:
                        exhausted = True
                        break
                    if plan is None:
                        break
                    schedule.start(plan)
                while sent in schedule.answers:
                    yield schedule.answers.pop(sent)
                    sent += 1
                if exhausted and sent == schedule.started:
                    return
                self._feed(schedule)
                self._collect(schedule)
        finally:
            for seat in self._seats:  # an abandoned stream leaves no half-done work behind
                if seat.jobs:
                    self._replace(seat)
                    seat.jobs.clear()

    def _feed(self, schedule: WorkSchedule) -> None:
        # Who calls with one task at a time meets another worker each time, whose next child has
        # been forked meanwhile.
        self._seats = [*self._seats[1:], self._seats[0]]
        for depth in range(_QUEUED_PER_WORKER):
            for seat in self._seats:
                job = schedule.next(seat) if seat.ready and len(seat.jobs) <= depth else None
                if job is not None:
                    if not seat.jobs:
                        seat.since = now()
                    seat.jobs.append(job)
                    seat.worker.send(job.packed(self.settings))

    def _collect(self, schedule: WorkSchedule) -> None:
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
            self._read(key.data, schedule)
        for seat in self._seats:
            if (seat.jobs or not seat.ready) and now() - seat.since > self._limit(seat):
                self._recover(seat, schedule)

    def _limit(self, seat: _Seat) -> float:
        """Seconds after which a silent worker counts as hung."""
        return self.settings.timeout + _GRACE_SECONDS if seat.ready else START_SECONDS

    def _read(self, seat: _Seat, schedule: WorkSchedule) -> None:
        if not seat.ready:
            try:
                hello = seat.worker.hello()
                if hello is not None:
                    self._admit(seat, hello)
            except UserError:  # it, or a probe of its, was killed meanwhile, perhaps
                if seat.starts >= _TRIES:
                    raise
                self._replace(seat)
            return
        reports = seat.worker.pull()
        sound = reports is not None
        for report in reports or ():
            if not seat.jobs:
                continue
            if report.end == wire.END_LOST:
                sound = False
                break
            job = seat.jobs.popleft()
            seat.since = now()
            if report.end == wire.END_KILLED and job.tasks[0].tries < _KILLS:
                job.tasks[0].tries += 1
                job.give_up()
            elif report.end == wire.END_SIGNAL and not job.believe_crash():
                job.give_up()
            else:
                sound = job.take(report) and sound
            for task in job.tasks:
                schedule.add(task)
        if not sound:
            self._recover(seat, schedule)

    def _recover(self, seat: _Seat, schedule: WorkSchedule) -> None:
        """A worker is dead, hung or out of step: a new one takes its seat, its tasks go again."""
        jobs, seat.jobs = seat.jobs, deque()
        if jobs:
            first = jobs[0].tasks[0]
            first.tries += 1
            if first.tries >= _TRIES:
                first.fill(CallOutcome(Reason.LOST))
        for job in jobs:
            job.give_up()
            for task in job.tasks:
                schedule.add(task)
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
