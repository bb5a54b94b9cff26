"""Takes plans through their stages, many at a time, and brings their answers back in order."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from .jobs import Outcome
from .plans import Plan
from .sandbox.wire import Work

_Answer = TypeVar("_Answer")
_NOTHING = Work("", ())  # keeps the place of a stage that executes nothing


@dataclass(frozen=True)
class _Stage(Generic[_Answer]):
    """What a plan wants executed now; of a plan that has come to its end, nothing."""

    number: int
    plan: Plan[_Answer] | None
    works: Sequence[Work]


class Stages(Generic[_Answer]):
    """`works` is what a pool's stream takes, `answers` reads what it gives."""

    def __init__(self, plans: Iterable[Plan[_Answer] | None]) -> None:
        self._plans = iter(plans)
        self._opened = 0
        self._handed_out: deque[_Stage[_Answer]] = deque()
        self._next: deque[_Stage[_Answer]] = deque()
        self._answers: dict[int, _Answer] = {}

    def works(self) -> Iterator[Work | None]:
        """The works of all stages; None for "nothing yet"."""
        exhausted = False
        while not exhausted or self._handed_out or self._next:
            if not self._next and not exhausted:
                try:
                    plan = next(self._plans)
                except StopIteration:
                    exhausted = True
                    continue
                if plan is not None:
                    self._opened += 1
                    self._go_on(self._opened - 1, plan, None)
            if not self._next:
                yield None
                continue
            stage = self._next.popleft()
            self._handed_out.append(stage)
            yield from stage.works or (_NOTHING,)

    def answers(self, stream: Iterable[list[Outcome]]) -> Iterator[_Answer]:
        """The answers, from the outcomes of the works."""
        given = 0
        results: list[list[Outcome]] = []
        for outcomes in stream:
            stage = self._handed_out[0]
            results.append(outcomes)
            if len(results) < len(stage.works):
                continue
            self._handed_out.popleft()
            if stage.plan is not None:
                self._go_on(stage.number, stage.plan, results if stage.works else [])
            results = []
            while given in self._answers:
                yield self._answers.pop(given)
                given += 1

    def _go_on(self, number: int, plan: Plan[_Answer], results: list[list[Outcome]] | None) -> None:
        """Take a plan to its next stage, or to its answer."""
        try:
            works = plan.send(results)  # type: ignore[arg-type]  # None starts it
        except StopIteration as end:
            self._answers[number] = end.value
            if results is None:
                self._next.append(_Stage(number, None, ()))
            return
        self._next.append(_Stage(number, plan, works))
