"""The referee: validates programs and grades answers in batches on its workers.

It distributes jobs, returns results in order, and replaces lost workers.
"""

import os
import platform
import sys
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from multiprocessing.connection import wait
from typing import Any, TypeVar

from azr_population.errors import UserError

from . import procedures
from .jobs import CallOutcome, Procedure, WorkSchedule
from .limits import RefereeSettings
from .sandbox.wire import Report, SandboxWork
from .verdicts import Execution, Grade, Judgement, Program, Question
from .zygote_handle import SandboxLayer, Worker, now

_WINDOW_PER_WORKER = 256  # how far results may run ahead of the slowest task
_JOBS_AHEAD = 4  # per worker
_GRACE_SECONDS = 5.0  # beyond the deadlines, before a silent zygote counts as hung
_STARTS = 10  # of a worker, one after the other

_Answer = TypeVar("_Answer")


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
        self._workers: list[Worker] = []
        self._start()

    def __exit__(self, *exception: object) -> None:
        self.close()

    def check(self, programs: Iterable[Program]) -> list[Execution]:
        """Runs each program twice on each of its inputs.

        An execution is valid if every output is a literal and both runs agree; the second run has
        other random numbers, another clock and other addresses.
        """
        return list(self._stream(map(procedures.check, programs)))

    def grade(self, questions: Iterable[Question]) -> list[tuple[Grade, ...]]:
        """Grades the answers of each question against its gold outputs. code_o executes nothing."""
        return list(self._stream(map(procedures.grade, questions)))

    def judge(self, questions: Iterable[Question]) -> list[Judgement]:
        """Validates each question's program and grades the answers against its outputs."""
        return list(self.stream(questions))

    def stream(self, questions: Iterable[Question | None]) -> Iterator[Judgement]:
        """Judgements one by one, in the order of the questions, with bounded read-ahead.

        None among the questions means "none yet": the source is asked again after an answer.
        """
        return self._stream(q if q is None else procedures.judge(q) for q in questions)

    def run(self, works: Iterable[SandboxWork]) -> list[list[CallOutcome]]:
        """The outcomes of raw works for callers with other rules: `patches.referee_executor`."""
        return list(self.outcomes(works))

    def outcomes(self, works: Iterable[SandboxWork]) -> Generator[list[CallOutcome], None, None]:
        """Outcomes one by one, in the order of the works, with bounded read-ahead."""
        return self._stream(map(procedures.execute, works))

    def close(self) -> None:
        """Kills all workers. Idempotent."""
        if os.getpid() == self._owner:
            for worker in self._workers:
                worker.close()
        self._workers = []

    def _start(self) -> None:
        self._owner, self._lock = os.getpid(), threading.Lock()
        self._reader = 0  # the thread whose stream is open
        self._workers = []
        try:
            for _ in range(self.settings.worker_count):
                self._workers.append(Worker(self.settings))
            for worker in list(self._workers):
                self._ready(worker)
            if self._two_workers and len(self._workers) == 1:
                self._workers.append(Worker(self.settings))
        except BaseException:
            self.close()
            raise

    @property
    def _two_workers(self) -> bool:
        """Whether a second run needs another worker to have other addresses."""
        return not any(name == "fixed addresses" and on for name, on, _ in self.layers)

    def _ready(self, worker: Worker) -> Worker:
        """This worker, once it has started, or another in its place."""
        for _ in range(_STARTS):
            try:
                self.layers = worker.layers
                return worker
            except UserError as error:  # perhaps it or one of its probes was killed meanwhile
                failure = error
                worker = self._replace(worker)
        raise failure

    def _replace(self, worker: Worker) -> Worker:
        worker.close()
        successor = Worker(self.settings)
        self._workers[self._workers.index(worker)] = successor
        return successor

    def _stream(
        self, procedures: Iterable[Procedure[_Answer] | None]
    ) -> Generator[_Answer, None, None]:
        """Yields the procedures' answers in order, with bounded read-ahead; None among them means
        "none yet". Only one stream runs at a time; another thread's waits. Raises ValueError: this
        thread has not read another one to its end, or the referee is closed."""
        if os.getpid() != self._owner:  # forked: the workers belong to the parent
            for worker in self._workers:
                worker.disconnect()
            self._start()
        if self._reader == threading.get_ident():  # it would wait for itself
            raise ValueError("read this thread's other stream to its end, or close it, before")
        with self._lock:
            if not self._workers:
                raise ValueError("the referee is closed")
            self._reader = threading.get_ident()
            try:
                yield from self._answers(iter(procedures))
            finally:
                self._reader = 0

    def _answers(self, procedures: Iterator[Procedure[_Answer] | None]) -> Iterator[_Answer]:
        schedule = WorkSchedule(self._two_workers)
        sent = 0
        window = _WINDOW_PER_WORKER * len(self._workers)
        ahead = _JOBS_AHEAD * len(self._workers)
        exhausted = False
        try:
            while True:
                while not exhausted and len(schedule) < ahead and schedule.started - sent < window:
                    try:
                        procedure = next(procedures)
                    except StopIteration:
                        exhausted = True
                        break
                    if procedure is None:
                        break
                    schedule.start(procedure)
                while sent in schedule.answers:
                    yield schedule.answers.pop(sent)
                    sent += 1
                if exhausted and sent == schedule.started:
                    return
                self._give(schedule)
                self._collect(schedule)
        finally:
            for worker in list(self._workers):  # after an abandoned stream no work is left over
                if worker.job:
                    self._replace(worker)

    def _give(self, schedule: WorkSchedule) -> None:
        """Gives each idle worker a job."""
        # Jobs go to the workers in turn: each has forked its next child meanwhile.
        self._workers = [*self._workers[1:], self._workers[0]]
        for worker in list(self._workers):
            if worker.job or not len(schedule):
                continue
            worker = self._ready(worker)
            if job := schedule.next(worker):
                worker.job, worker.since = job, now()
                worker.send(job.packed(self.settings))

    def _collect(self, schedule: WorkSchedule) -> None:
        """Waits for reports (or for a hung worker) and stores them."""
        busy = [worker for worker in self._workers if worker.job]
        if not busy:
            return
        # A zygote waits for the deadline until a child has its job, and again until it ends.
        limit = 2 * self.settings.timeout + _GRACE_SECONDS
        patience = min(worker.since for worker in busy) + limit - now()
        ready: list[Any] = wait(busy, max(patience, 0))  # type: ignore[arg-type]  # has a fileno
        for worker in ready:
            self._finish(worker, worker.receive(), schedule)
        for worker in busy:
            if worker.job and now() - worker.since > limit:
                self._finish(worker, None, schedule)

    def _finish(self, worker: Worker, report: Report | None, schedule: WorkSchedule) -> None:
        """Stores a report; replaces a worker that is dead or hung (None) or out of step."""
        job, worker.job = worker.job, None
        assert job is not None  # it is busy
        if not job.finish(report):
            self._replace(worker)
        schedule.add(job.task)


def confinement() -> list[SandboxLayer]:
    """Starts a worker, applies every layer and tests which are effective."""
    if not sys.platform.startswith("linux"):
        return [SandboxLayer("seccomp", False, f"{platform.system()} has none")]
    try:
        with Referee(RefereeSettings(workers=1, allow_unsandboxed=True)) as referee:
            return referee.layers
    except UserError as error:
        return [SandboxLayer("seccomp", False, str(error))]
