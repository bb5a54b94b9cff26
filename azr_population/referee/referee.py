"""The referee: validates programs and grades answers, in batches, on all its workers.

It spreads jobs over them, brings results back in order, and outlives lost workers.
"""

import os
import platform
import selectors
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

from azr_population.errors import UserError

from . import plans
from .jobs import CallOutcome, Plan, WorkSchedule
from .limits import RefereeSettings
from .sandbox import wire
from .sandbox.wire import SandboxWork
from .verdicts import Execution, Grade, Judgement, Program, Question, Reason
from .zygote_handle import START_SECONDS, Worker, cannot_start, now

_QUEUED_PER_WORKER = 2  # one runs, one waits in the socket, so that a zygote never idles
_WINDOW_PER_WORKER = 256  # how far results may run ahead of the slowest task
_GRACE_SECONDS = 5.0  # beyond the deadline, before a silent zygote counts as hung
_TRIES = 10  # of one task
_KILLS = 30  # of one task
_STARTS = 10  # of one worker

_Answer = TypeVar("_Answer")


class SandboxLayer(NamedTuple):
    """One layer of confinement, as tried in a worker."""

    name: str
    available: bool
    detail: str


class Referee(AbstractContextManager["Referee"]):
    """Runs model-written Python behind walls and says what came of it.

    All calls take batches, use every worker, and return in order. Use it as a context manager, or
    `close` it; a fork of the process starts workers of its own. Raises `UserError` where the
    platform cannot confine and the settings do not accept that.
    """

    def __init__(self, settings: RefereeSettings | None = None) -> None:
        self.settings = settings or RefereeSettings()
        self.layers: list[SandboxLayer] = []
        """The layers of confinement in the workers."""
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._workers: list[Worker] = []
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
        self._workers = []
        try:
            self._add_workers(self.settings.worker_count)
            if self._two_workers and len(self._workers) == 1:
                self._add_workers(1)
        except BaseException:
            self.close()
            raise

    @property
    def _two_workers(self) -> bool:
        """Whether a second run needs another worker, to be at other addresses."""
        return not any(name == "fixed addresses" and on for name, on, _ in self.layers)

    def _add_workers(self, count: int) -> None:
        """Start workers and wait until all are warm."""
        for _ in range(count):
            worker = Worker(self.settings)
            self._workers.append(worker)
            self._selector.register(worker.sock, selectors.EVENT_READ, worker)
        nothing = WorkSchedule(self.settings, count)
        while not all(worker.ready for worker in self._workers):
            self._collect(nothing)

    def _admit(self, hello: dict[str, Any]) -> None:
        """Look at what confines a worker that has greeted."""
        self.layers = [SandboxLayer(*layer) for layer in hello["layers"]]
        seccomp = next(layer for layer in self.layers if layer.name == "seccomp")
        if not seccomp.available and not self.settings.allow_unsandboxed:
            raise UserError(
                f"referee: this platform cannot confine programs ({seccomp.detail}); "
                "referee.allow_unsandboxed=true runs model-written code as you, at your own risk"
            )

    def close(self) -> None:
        """Kill all workers. Idempotent."""
        if os.getpid() == self._owner:
            for worker in self._workers:
                worker.close()
        self._workers = []
        self._selector.close()

    def _stream(self, plans: Iterable[Plan[_Answer] | None]) -> Iterator[_Answer]:
        """Yield the answer of each plan in the order the plans come; reads ahead a bounded way.

        A None among the plans means "nothing yet". Only one stream runs at a time; another
        thread's waits.
        """
        if os.getpid() != self._owner:  # forked: those workers are the parent's
            self._owner, self._lock = os.getpid(), threading.Lock()
            for worker in self._workers:
                worker.sock.close()
            self._start()
        with self._lock:
            if not self._workers:
                raise ValueError("the referee is closed")
            yield from self._answers(iter(plans))

    def _answers(self, plans: Iterator[Plan[_Answer] | None]) -> Iterator[_Answer]:
        schedule = WorkSchedule(self.settings, len(self._workers), self._two_workers)
        sent = 0
        window = _WINDOW_PER_WORKER * len(self._workers)
        ahead = _QUEUED_PER_WORKER * len(self._workers) * (self.settings.share + 1)
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
            for worker in list(self._workers):  # an abandoned stream leaves no half-done work
                if worker.jobs:
                    self._replace(worker)

    def _feed(self, schedule: WorkSchedule) -> None:
        # Who calls with one task at a time meets another worker each time, whose next child has
        # been forked meanwhile.
        self._workers = [*self._workers[1:], self._workers[0]]
        for depth in range(_QUEUED_PER_WORKER):
            for worker in self._workers:
                free = worker.ready and len(worker.jobs) <= depth
                job = schedule.next(worker) if free else None
                if job is not None:
                    if not worker.jobs:
                        worker.since = now()
                    worker.jobs.append(job)
                    worker.send(job.packed(self.settings))

    def _collect(self, schedule: WorkSchedule) -> None:
        """Wait for reports (or for a hung worker) and book them."""
        busy = [worker for worker in self._workers if worker.jobs or not worker.ready]
        if not busy:
            return
        for worker in busy:
            worker.push()
        patience = min(worker.since + self._limit(worker) for worker in busy) - now()
        if any(worker.outgoing for worker in busy):
            patience = min(patience, 0.001)
        for key, _ in self._selector.select(max(patience, 0)):
            self._read(key.data, schedule)
        for worker in list(self._workers):
            waits = worker.jobs or not worker.ready
            if waits and now() - worker.since > self._limit(worker):
                self._recover(worker, schedule)

    def _limit(self, worker: Worker) -> float:
        """Seconds after which a silent worker counts as hung."""
        return self.settings.timeout + _GRACE_SECONDS if worker.ready else START_SECONDS

    def _read(self, worker: Worker, schedule: WorkSchedule) -> None:
        if not worker.ready:
            try:
                hello = worker.hello()
                if hello is not None:
                    self._admit(hello)
                    worker.ready, worker.starts = True, 0
            except UserError as error:  # it, or a probe of its, was killed meanwhile, perhaps
                self._replace(worker, error)
            return
        reports = worker.pull()
        sound = reports is not None
        for report in reports or ():
            if not worker.jobs:
                continue
            if report.end == wire.END_LOST:
                sound = False
                break
            job = worker.jobs.popleft()
            worker.since = now()
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
            self._recover(worker, schedule)

    def _recover(self, worker: Worker, schedule: WorkSchedule) -> None:
        """A worker is dead, hung or out of step: a new one takes its place, its tasks go again."""
        if worker.jobs:
            first = worker.jobs[0].tasks[0]
            first.tries += 1
            if first.tries >= _TRIES:
                first.fill(CallOutcome(Reason.LOST))
        for job in worker.jobs:
            job.give_up()
            for task in job.tasks:
                schedule.add(task)
        self._replace(worker)

    def _replace(self, worker: Worker, error: UserError | None = None) -> None:
        """Start a new worker in the place of one; it takes jobs once it has greeted."""
        if worker.starts >= _STARTS:
            raise error or UserError(f"referee: a worker did not start in {START_SECONDS:.0f} s")
        self._selector.unregister(worker.sock)
        worker.close()
        successor = Worker(self.settings, worker.starts + 1)
        self._workers[self._workers.index(worker)] = successor
        self._selector.register(successor.sock, selectors.EVENT_READ, successor)


def confinement() -> list[SandboxLayer]:
    """Start a worker, put every layer in force, see which ones bite, and say so."""
    if not sys.platform.startswith("linux"):
        return [SandboxLayer("seccomp", False, f"{platform.system()} has none")]
    try:
        with Referee(RefereeSettings(workers=1, allow_unsandboxed=True)) as referee:
            return referee.layers
    except UserError as error:
        return [SandboxLayer("seccomp", False, str(error))]
