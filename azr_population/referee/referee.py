"""The referee: validates programs and grades answers in batches on its workers.

It distributes jobs, returns results in order, and replaces lost workers.
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

_QUEUED_PER_WORKER = 2  # one runs, one waits in the socket, so that a zygote is never idle
_WINDOW_PER_WORKER = 256  # how far results may run ahead of the slowest task
_GRACE_SECONDS = 5.0  # beyond the deadline, before a silent zygote counts as hung
_TRIES = 10  # per task
_KILLS = 30  # per task
_STARTS = 10  # per worker

_Answer = TypeVar("_Answer")


class SandboxLayer(NamedTuple):
    """One layer of confinement, as tested in a worker."""

    name: str
    available: bool
    detail: str


class Referee(AbstractContextManager["Referee"]):
    """Runs model-written Python in a sandbox and judges it.

    All methods take batches, use every worker and return in order. Use it as a context manager, or
    call `close`; a forked process starts new workers. Raises `UserError`: the platform cannot
    confine programs and the settings do not accept that.
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
        """Runs each program twice on each of its inputs.

        An execution is valid if every output is a literal and both runs agree; the second run has
        other random numbers, another clock and other addresses.
        """
        return list(self._stream(map(plans.check, programs)))

    def grade(self, questions: Sequence[Question]) -> list[tuple[Grade, ...]]:
        """Grades the answers of each question against its gold outputs. code_o executes nothing."""
        return list(self._stream(map(plans.grade, questions)))

    def judge(self, questions: Sequence[Question]) -> list[Judgement]:
        """Validates each question's program and grades the answers against its outputs."""
        return list(self.stream(questions))

    def stream(self, questions: Iterable[Question | None]) -> Iterator[Judgement]:
        """As `judge`, one by one in order, with bounded read-ahead.

        None among the questions means "none yet": the source is asked again after an answer.
        """
        return self._stream(q if q is None else plans.judge(q) for q in questions)

    def run(self, works: Iterable[SandboxWork]) -> list[list[CallOutcome]]:
        """The outcomes of raw works for callers with other rules: `patches.referee_executor`."""
        return list(self.outcomes(works))

    def outcomes(self, works: Iterable[SandboxWork]) -> Iterator[list[CallOutcome]]:
        """As `run`, one by one in order, with bounded read-ahead."""
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
        """Whether a second run needs another worker to have other addresses."""
        return not any(name == "fixed addresses" and on for name, on, _ in self.layers)

    def _add_workers(self, count: int) -> None:
        """Starts workers and waits until all are ready."""
        for _ in range(count):
            worker = Worker(self.settings)
            self._workers.append(worker)
            self._selector.register(worker.sock, selectors.EVENT_READ, worker)
        nothing = WorkSchedule(self.settings, count)
        while not all(worker.ready for worker in self._workers):
            self._collect(nothing)

    def _admit(self, hello: dict[str, Any]) -> None:
        """Checks the confinement of a worker from its greeting."""
        self.layers = [SandboxLayer(*layer) for layer in hello["layers"]]
        seccomp = next(layer for layer in self.layers if layer.name == "seccomp")
        if not seccomp.available and not self.settings.allow_unsandboxed:
            raise UserError(
                f"referee: this platform cannot confine programs ({seccomp.detail}); "
                "referee.allow_unsandboxed=true runs model-written code as you, at your own risk"
            )

    def close(self) -> None:
        """Kills all workers. Idempotent."""
        if os.getpid() == self._owner:
            for worker in self._workers:
                worker.close()
        self._workers = []
        self._selector.close()

    def _stream(self, plans: Iterable[Plan[_Answer] | None]) -> Iterator[_Answer]:
        """Yields the plans' answers in order, with bounded read-ahead; None among the plans means
        "none yet". Only one stream runs at a time; another thread's waits."""
        if os.getpid() != self._owner:  # forked: the workers belong to the parent
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
            for worker in list(self._workers):  # after an abandoned stream no work is left over
                if worker.jobs:
                    self._replace(worker)

    def _feed(self, schedule: WorkSchedule) -> None:
        # Single tasks go to the workers in turn: each has forked its next child meanwhile.
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
        """Waits for reports (or for a hung worker) and stores them."""
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
            except UserError as error:  # perhaps it or one of its probes was killed meanwhile
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
        """Replaces a worker that is dead, hung or out of step, and requeues its tasks."""
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
        """Starts a new worker in place of one; it gets jobs after its greeting."""
        if worker.starts >= _STARTS:
            raise error or UserError(f"referee: a worker did not start in {START_SECONDS:.0f} s")
        self._selector.unregister(worker.sock)
        worker.close()
        successor = Worker(self.settings, worker.starts + 1)
        self._workers[self._workers.index(worker)] = successor
        self._selector.register(successor.sock, selectors.EVENT_READ, successor)


def confinement() -> list[SandboxLayer]:
    """Starts a worker, applies every layer and tests which are effective."""
    if not sys.platform.startswith("linux"):
        return [SandboxLayer("seccomp", False, f"{platform.system()} has none")]
    try:
        with Referee(RefereeSettings(workers=1, allow_unsandboxed=True)) as referee:
            return referee.layers
    except UserError as error:
        return [SandboxLayer("seccomp", False, str(error))]
