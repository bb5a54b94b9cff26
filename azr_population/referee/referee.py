"""The referee: validates programs and grades answers, in batches, on all its workers."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .jobs import Outcome
from .pool import Pool
from .reasons import Execution, Grade, Judgement, Program, Question, Reason
from .sandbox import literal, wire
from .sandbox.wire import Call, Work
from .settings import RefereeSettings

MAX_SOURCE_CHARS = 200_000
_NOTHING = Work("", ())
_LOOSE = re.compile(r"[.{jJ]|[0-9][eE]")
"""What a value that can be written in several ways shows in its text: a float, a complex number, a
dict or a set. Without it, literals written by `literal.write` are the same only as texts."""


class Referee:
    """Runs model-written Python behind walls and says what came of it.

    All calls take batches, use every worker, and return in order. Use it as a context manager, or
    `close` it. Raises `UserError` where the platform cannot confine and the settings do not
    accept that.
    """

    def __init__(self, settings: RefereeSettings | None = None) -> None:
        self.settings = settings or RefereeSettings()
        self._pool = Pool(self.settings)

    def __enter__(self) -> Referee:
        return self

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
        """Run each program twice on each of its inputs, all in one child.

        An execution is valid when every output is a literal and both runs agree. The second round
        follows when the first is through, so that a count of calls shows as disagreement.
        """
        plans = [_Plan.check(program) for program in programs]
        return [plan.execution(results[0]) for plan, results in self._results(plans)]

    def grade(self, questions: Sequence[Question]) -> list[tuple[Grade, ...]]:
        """Grade the answers of each question against the gold outputs that it carries.

        code_o executes nothing. Identical answers are executed once.
        """
        plans = [_Plan.grade(question) for question in questions]
        return [plan.grades(results) for plan, results in self._results(plans)]

    def judge(self, questions: Sequence[Question]) -> list[Judgement]:
        """Validate each question's program and grade its answers against what it computes."""
        return list(self.stream(questions))

    def stream(self, questions: Iterable[Question | None]) -> Iterator[Judgement]:
        """As `judge`, one by one in order, reading ahead in a bounded way.

        A None among the questions means that there is nothing to read yet: the source is asked
        again when something has been finished.
        """
        plans = (None if question is None else _Plan.judge(question) for question in questions)
        for plan, results in self._results(plans):
            yield plan.judgement(results)

    def run(self, works: Iterable[Work]) -> list[list[Outcome]]:
        """The outcomes of raw work, for callers with rules of their own (see `azr.executor`)."""
        return self._pool.run(works)

    def _results(
        self, plans: Iterable[_Plan | None]
    ) -> Iterator[tuple[_Plan, list[list[Outcome]]]]:
        """Each plan with the outcomes of each of its works."""
        open_plans: deque[_Plan] = deque()
        per_call = self.settings.child_per_call

        def works() -> Iterator[Work | None]:
            for plan in plans:
                if plan is None:
                    yield None
                    continue
                open_plans.append(plan)
                for work in plan.works or (_NOTHING,):
                    if per_call and len(work.calls) > 1:
                        yield from (work._replace(calls=(call,)) for call in work.calls)
                    else:
                        yield work

        stream = self._pool.stream(works())
        for first in stream:
            plan = open_plans.popleft()
            results: list[list[Outcome]] = []
            for position, work in enumerate(plan.works or (_NOTHING,)):
                outcomes = first if position == 0 else next(stream)
                while len(outcomes) < len(work.calls):
                    outcomes = outcomes + next(stream)
                results.append(outcomes)
            yield plan, results


@dataclass
class _Plan:
    """The works that answer one question, and how to read what came of them.

    `places[i]` says where answer i was executed: (work, call), or why it was not: a Grade.
    """

    works: list[Work]
    inputs: int = 0
    kind: str = ""
    answers: tuple[str, ...] = ()
    places: list[tuple[int, int] | Grade] | None = None
    gold: tuple[str, ...] = ()
    refused: Execution | None = None

    @classmethod
    def check(cls, program: Program) -> _Plan:
        if len(program.source) > MAX_SOURCE_CHARS:
            return cls([], refused=Execution(False, Reason.TOO_LARGE, detail="the program's text"))
        if not program.inputs:
            return cls([], refused=Execution(False, Reason.BAD_INPUT, detail="no input"))
        calls = tuple(Call(wire.EXPRESSION, text) for text in program.inputs) * 2
        work = Work(
            program.source, calls, tuple(program.imports), program.banned, program.statements
        )
        return cls([work], inputs=len(program.inputs))

    @classmethod
    def grade(cls, question: Question) -> _Plan:
        plan = cls([], kind=question.kind, answers=question.answers, gold=question.outputs)
        plan._place(question)
        return plan

    @classmethod
    def judge(cls, question: Question) -> _Plan:
        if question.kind == "malformed":
            return cls([], refused=Execution(False, Reason.MALFORMED))
        given = question.kind == "code_f" and not question.program
        if given:
            plan = cls([], gold=question.outputs)
        else:
            inputs = question.inputs if question.kind == "code_f" else question.inputs[:1]
            plan = cls.check(Program(question.program, inputs, question.imports))
        plan.kind, plan.answers = question.kind, question.answers
        if question.kind == "code_f":  # its program is what the answers must not see
            plan.works = [work._replace(alone=True) for work in plan.works]
        if plan.refused is None:
            plan._place(question)
        return plan

    def _place(self, question: Question) -> None:
        """Decide where each answer is executed. Equal answers share an execution.

        code_i: in the child of the program, between its two validation runs. code_f: each answer
        in a child of its own, for it may read all that its process ever held: neither the
        teacher's program nor another student's may be there.
        """
        if question.kind == "code_o":
            return
        self.places = []
        seen: dict[str, tuple[int, int]] = {}
        if question.kind == "code_i":
            calls: list[Call] = []
            validated = len(self.works)  # 1 when judging: then the first call is the validation
            for answer in question.answers:
                if len(answer) > literal.MAX_CHARS:
                    self.places.append(Grade(False, 0.0, Reason.TOO_LARGE))
                    continue
                if answer not in seen:
                    seen[answer] = (0, validated + len(calls))
                    calls.append(Call(wire.LITERAL, answer))
                self.places.append(seen[answer])
            if validated:
                check = self.works[0].calls
                self.works[0] = self.works[0]._replace(calls=(check[0], *calls, check[1]))
            elif calls:
                self.works = [Work(question.program, tuple(calls), tuple(question.imports))]
        elif question.kind == "code_f":
            hidden = tuple(Call(wire.EXPRESSION, text) for text in question.inputs)
            for answer in question.answers:
                if len(answer) > MAX_SOURCE_CHARS:
                    self.places.append(Grade(False, 0.0, Reason.TOO_LARGE))
                    continue
                if answer not in seen:
                    seen[answer] = (len(self.works), 0)
                    self.works.append(Work(answer, hidden, tuple(question.imports), alone=True))
                self.places.append(seen[answer])
        else:
            raise ValueError(f"unknown task type {question.kind!r}: code_o, code_i or code_f")

    def execution(self, outcomes: list[Outcome]) -> Execution:
        """Read a validation: the first round at the front, the second at the back."""
        if self.refused is not None:
            return self.refused
        rounds = outcomes[: self.inputs], outcomes[-self.inputs :]
        texts = []
        for first, second in zip(*rounds, strict=True):
            if first.reason is not Reason.OK:
                return Execution(False, first.reason, detail=first.text)
            if second.reason is Reason.TIMEOUT:
                return Execution(False, Reason.TIMEOUT)
            if second.reason is not Reason.OK:
                return Execution(False, Reason.NONDETERMINISTIC, detail=second.text)
            try:
                agree = first.text == second.text
                value = literal.parse(first.text)
                if not agree and not literal.same(value, literal.parse(second.text)):
                    return Execution(False, Reason.NONDETERMINISTIC)
            except literal.NotLiteral as error:
                return Execution(False, Reason.TAMPERED, detail=str(error))
            texts.append(first.text)
        return Execution(True, Reason.OK, tuple(texts))

    def grades(self, results: list[list[Outcome]]) -> tuple[Grade, ...]:
        """Read the answers' verdicts off the outcomes."""
        try:
            gold = [literal.parse(text) for text in self.gold]
        except literal.NotLiteral as error:
            lost = Grade(False, 0.0, Reason.MALFORMED, f"the gold output: {error}")
            return (lost,) * len(self.answers)
        if not gold or (self.kind == "code_f" and self._hidden(results) != len(gold)):
            detail = "as many gold outputs as hidden inputs are needed"
            return (Grade(False, 0.0, Reason.MALFORMED, detail),) * len(self.answers)
        if self.kind == "code_o":
            return tuple(_compare_literal(answer, self.gold[0], gold[0]) for answer in self.answers)
        grades = []
        for place in self.places or ():
            if isinstance(place, Grade):
                grades.append(place)
                continue
            work, call = place
            if self.kind == "code_i":
                right, reason, detail = _compare(results[work][call], self.gold[0], gold[0])
                grades.append(Grade(right, float(right), reason, detail))
            else:
                grades.append(self._grade_function(results[work], gold))
        return tuple(grades)

    def _hidden(self, results: list[list[Outcome]]) -> int:
        for place in self.places or ():
            if not isinstance(place, Grade):
                return len(results[place[0]])
        return len(self.gold)

    def _grade_function(self, outcomes: list[Outcome], gold: list[object]) -> Grade:
        verdicts = [
            _compare(outcome, text, value)
            for outcome, text, value in zip(outcomes, self.gold, gold, strict=True)
        ]
        right = sum(verdict[0] for verdict in verdicts)
        solved = right == len(verdicts)
        failed = next((verdict for verdict in verdicts if not verdict[0]), verdicts[0])
        return Grade(solved, right / len(verdicts), failed[1], failed[2])

    def judgement(self, results: list[list[Outcome]]) -> Judgement:
        """Validation first; where it fails there is nothing to grade against."""
        if self.refused is not None:
            return Judgement(self.refused)
        if self.inputs:
            execution = self.execution(results[0])
            if not execution.valid:
                return Judgement(execution)
            self.gold = execution.outputs
        else:
            execution = Execution(True, Reason.OK, self.gold)
        grades = self.grades(results)
        if grades and all(grade.reason is Reason.MALFORMED for grade in grades):
            return Judgement(Execution(False, Reason.MALFORMED, detail=grades[0].detail))
        return Judgement(execution, grades)


def _compare_literal(answer: str, gold_text: str, gold: object) -> Grade:
    """Grade a predicted output: nothing runs, two literals are compared."""
    if answer == gold_text:
        return Grade(True, 1.0, Reason.SOLVED)
    try:
        right = literal.same(literal.parse(answer), gold)
    except literal.TooLarge as error:
        return Grade(False, 0.0, Reason.TOO_LARGE, str(error))
    except literal.NotLiteral as error:
        return Grade(False, 0.0, Reason.NOT_LITERAL, str(error))
    return Grade(right, float(right), Reason.SOLVED if right else Reason.WRONG)


def _compare(outcome: Outcome, gold_text: str, gold: object) -> tuple[bool, Reason, str]:
    """Whether an execution gave the gold output; its text is only ever read as a literal."""
    if outcome.reason is not Reason.OK:
        return False, outcome.reason, outcome.text
    if outcome.text == gold_text:
        return True, Reason.SOLVED, ""
    if not _LOOSE.search(gold_text) and not _LOOSE.search(outcome.text):
        return False, Reason.WRONG, ""
    try:
        right = literal.same(literal.parse(outcome.text), gold)
    except literal.NotLiteral as error:
        return False, Reason.TAMPERED, str(error)
    return right, Reason.SOLVED if right else Reason.WRONG, ""
