"""Spreads jobs over the workers, brings results back in order, and outlives lost workers."""

import os
import selectors
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from azr_population.errors import UserError

from .jobs import Job, Outcome, PendingWork
from .reasons import Reason
from .sandbox import wire
from .settings import RefereeSettings
from .waiting import Waiting
from .worker import START_SECONDS, Worker, now

_QUEUED_PER_WORKER = 2  # one runs, one waits in the socket, so that a zygote never idles
_WINDOW_PER_WORKER = 256  # how far results may run ahead of the slowest task
_GRACE_SECONDS = 5.0  # beyond the deadline, before a silent zygote counts as hung
_TRIES = 10  # of one task, or of starting one worker


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
            if self._two_workers and len(self._seats) == 1:
                self._seats.append(_Seat(Worker(self.settings)))
                self._admit(self._seats[1], self._seats[1].worker.greet())
                self._watch(self._seats[1])
        except BaseException:
            self.close()
            raise

    @property
    def _two_workers(self) -> bool:
        """Whether a second run needs another worker, to be at other addresses."""
        return not any(name == "fixed addresses" and on for name, on, _ in self.layers)

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
        waiting = Waiting(self.settings, len(self._seats))
        finished: dict[int, list[Outcome]] = {}
        taken = given = 0
        window = _WINDOW_PER_WORKER * len(self._seats)
        ahead = _QUEUED_PER_WORKER * len(self._seats) * (self.settings.share + 1)
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
                    task = PendingWork(taken, work, self._two_workers)
                    taken += 1
                    if task.done:
                        finished[task.number] = []
                    else:
                        waiting.add(task)
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

    def _feed(self, waiting: Waiting) -> None:
        # Who calls with one task at a time meets another worker each time, whose next child has
        # been forked meanwhile.
        self._seats = [*self._seats[1:], self._seats[0]]
        for depth in range(_QUEUED_PER_WORKER):
            for seat in self._seats:
                job = waiting.next(seat) if seat.ready and len(seat.jobs) <= depth else None
                if job is not None:
                    if not seat.jobs:
                        seat.since = now()
                    seat.jobs.append(job)
                    seat.worker.send(job.packed(self.settings))

    def _collect(self, waiting: Waiting, finished: dict[int, list[Outcome]]) -> None:
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

    def _read(self, seat: _Seat, waiting: Waiting, finished: dict[int, list[Outcome]]) -> None:
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
        sound = reports is not None
        for report in reports or ():
            if not seat.jobs:
                continue
            if report.end == wire.END_LOST:
                sound = False
                break
            job = seat.jobs.popleft()
            seat.since = now()
            if report.end == wire.END_KILLED and job.tasks[0].tries < _TRIES:
                job.tasks[0].tries += 1
                job.give_up()
            else:
                sound = job.take(report) and sound
            self._return(job, waiting, finished)
        if not sound:
            self._recover(seat, waiting, finished)

    def _return(self, job: Job, waiting: Waiting, finished: dict[int, list[Outcome]]) -> None:
        """Its tasks are done, or wait for what they still lack."""
        for task in job.tasks:
            waiting.add(task)
            if task.done:
                finished[task.number] = task.results()

    def _recover(self, seat: _Seat, waiting: Waiting, finished: dict[int, list[Outcome]]) -> None:
        """A worker is dead, hung or out of step: a new one takes its seat, its tasks go again."""
        jobs, seat.jobs = seat.jobs, deque()
        if jobs:
            first = jobs[0].tasks[0]
            first.tries += 1
            if first.tries >= _TRIES:
                first.fill(Outcome(Reason.LOST))
        for job in jobs:
            job.give_up()
            self._return(job, waiting, finished)
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
