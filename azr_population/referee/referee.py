"""The referee: validates programs and grades answers, in batches, on all its workers."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

from . import plans
from .jobs import CallOutcome
from .limits import RefereeSettings
from .pool import Pool
from .sandbox.wire import SandboxWork
from .verdicts import Execution, Grade, Judgement, Program, Question


class Referee(AbstractContextManager["Referee"]):
    """Runs model-written Python behind walls and says what came of it.

    All calls take batches, use every worker, and return in order. Use it as a context manager, or
    `close` it. Raises `UserError` where the platform cannot confine and the settings do not
    accept that.
    """

    def __init__(self, settings: RefereeSettings | None = None) -> None:
        self.settings = settings or RefereeSettings()
        self._pool = Pool(self.settings)

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def layers(self) -> list[tuple[str, bool, str]]:
        """The layers of confinement in the workers: (name, in force, detail)."""
        return list(self._pool.layers)

    def close(self) -> None:
        """End all workers. Idempotent."""
        self._pool.close()

    def check(self, programs: Sequence[Program]) -> list[Execution]:
        """Run each program twice on each of its inputs.

        An execution is valid when every output is a literal and both runs agree, the second of
        which takes place among other random numbers, at another time and at other addresses.
        """
        return list(self._pool.stream(map(plans.check, programs)))

    def grade(self, questions: Sequence[Question]) -> list[tuple[Grade, ...]]:
        """Grade the answers of each question against the gold outputs that it carries.

        code_o executes nothing. Identical answers are executed once.
        """
        return list(self._pool.stream(map(plans.grade, questions)))

    def judge(self, questions: Sequence[Question]) -> list[Judgement]:
        """Validate each question's program and grade its answers against what it computes."""
        return list(self.stream(questions))

    def stream(self, questions: Iterable[Question | None]) -> Iterator[Judgement]:
        """As `judge`, one by one in order, reading ahead in a bounded way.

        A None among the questions means that there is nothing to read yet: the source is asked
        again when something has been finished.
        """
        return self._pool.stream(q if q is None else plans.judge(q) for q in questions)

    def run(self, works: Iterable[SandboxWork]) -> list[list[CallOutcome]]:
        """The outcomes of raw work for callers with their own rules: `patches.referee_executor`."""
        return list(self.outcomes(works))

    def outcomes(self, works: Iterable[SandboxWork]) -> Iterator[list[CallOutcome]]:
        """As `run`, one by one in order, reading ahead in a bounded way."""
        return self._pool.stream(map(plans.execute, works))
