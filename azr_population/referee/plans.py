"""What is executed to answer a question, and how the outcomes are read.

A plan is a generator: it yields works, is sent the outcomes of their calls, and returns the answer.
Gold outputs never leave this side, and no hidden input is evaluated beside a student's program:
what is no literal becomes one in a child of the teacher's program first.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from .jobs import Outcome
from .reasons import Execution, Grade, Judgement, Program, Question, Reason
from .sandbox import literal, wire
from .sandbox.wire import Call, Work

MAX_SOURCE_CHARS = 200_000
_LOOSE = re.compile(r"[.{jJ]|[0-9][eE]")
"""What a value that can be written in several ways shows in its text: a float, a complex number, a
dict or a set. Without it, literals written by `literal.write` are the same only as texts."""

_Answer = TypeVar("_Answer")
Plan = Generator[Sequence[Work], Sequence[Sequence[Outcome]], _Answer]


class Gold(NamedTuple):
    """A gold output: as `literal.write` writes it (so outputs that are right often have the very
    same text), and its value."""

    text: str
    value: object

    @classmethod
    def read(cls, text: str) -> Gold:
        """Raises literal.NotLiteral."""
        value = literal.parse(text)
        return cls(literal.write(value), value)


def check(program: Program) -> Plan[Execution]:
    """Run a program twice on each of its inputs."""
    refused = _unfit(program)
    if refused is not None:
        return refused
    ((*outcomes,),) = yield [_validation(program)]
    return _execution(program, outcomes)[0]


def grade(question: Question) -> Plan[tuple[Grade, ...]]:
    """Grade the answers against the gold outputs that the question carries."""
    if question.kind not in ("code_o", "code_i", "code_f"):
        raise ValueError(f"unknown task type {question.kind!r}: code_o, code_i or code_f")
    malformed = ""
    gold: list[Gold] = []
    try:
        gold = [Gold.read(text) for text in question.outputs]
    except literal.NotLiteral as error:
        malformed = f"the gold output: {error}"
    paired = question.kind != "code_f" or len(question.inputs) == len(gold)
    if not malformed and not (gold and paired):
        malformed = "as many gold outputs as hidden inputs are needed"
    if malformed:
        return (Grade(False, 0.0, Reason.MALFORMED, malformed),) * len(question.answers)
    if question.kind == "code_o":
        return tuple(_compare_literal(answer, gold[0]) for answer in question.answers)
    if question.kind == "code_i":
        answers = _Answers(question.answers, literal.MAX_CHARS)
        work = Work(question.program, answers.as_inputs(), tuple(question.imports))
        (outcomes,) = (yield [work]) if answers.distinct else ((),)
        return answers.grades([_compare(outcome, gold[0]) for outcome in outcomes])
    inputs = yield from _as_literals(question)
    if isinstance(inputs, Grade):
        return (inputs,) * len(question.answers)
    answers = _Answers(question.answers, MAX_SOURCE_CHARS)
    calls = tuple(Call(wire.LITERAL, text) for text in inputs)
    # Each in a child of its own: it may read all that its process ever held, and neither the
    # teacher's program nor another student's may be there.
    results = yield [
        Work(answer, calls, tuple(question.imports), apart=True) for answer in answers.distinct
    ]
    return answers.grades([_grade_function(outcomes, gold) for outcomes in results])


def judge(question: Question) -> Plan[Judgement]:
    """Validate the question's program and grade its answers against what it computes."""
    if question.kind == "malformed":
        return Judgement(Execution(False, Reason.MALFORMED))
    if question.kind == "code_f" and not question.program:  # the pairs are given
        execution = Execution(True, Reason.OK, question.outputs)
        grades = yield from grade(question)
        if grades and all(grade.reason is Reason.MALFORMED for grade in grades):
            return Judgement(Execution(False, Reason.MALFORMED, detail=grades[0].detail))
        return Judgement(execution, grades)
    functions = question.kind == "code_f"
    program = Program(
        question.program,
        question.inputs if functions else question.inputs[:1],
        question.imports,
        literal_inputs=functions,
    )
    refused = _unfit(program)
    if refused is not None:
        return Judgement(refused)
    work = _validation(program)
    answers = _Answers(question.answers if question.kind == "code_i" else (), literal.MAX_CHARS)
    # A code_f program is what the answers to it must not see.
    work = work._replace(calls=work.calls + answers.as_inputs(), apart=functions)
    ((*outcomes,),) = yield [work]
    execution, gold = _execution(program, outcomes[: work.gate])
    if not execution.valid:
        return Judgement(execution)
    if question.kind == "code_o":
        right = [_compare_literal(answer, gold[0]) for answer in question.answers]
        return Judgement(execution, tuple(right))
    if question.kind == "code_i":
        compared = [_compare(outcome, gold[0]) for outcome in outcomes[work.gate :]]
        return Judgement(execution, answers.grades(compared))
    inputs = execution.inputs or question.inputs
    asked = replace(question, inputs=inputs, outputs=execution.outputs)
    return Judgement(execution, (yield from grade(asked)))


class _Answers:
    """The answers to a question; equal ones are executed once."""

    def __init__(self, answers: Sequence[str], max_chars: int) -> None:
        self._answers = answers
        self._max_chars = max_chars
        self.distinct = list(dict.fromkeys(a for a in answers if len(a) <= max_chars))

    def as_inputs(self) -> tuple[Call, ...]:
        return tuple(Call(wire.LITERAL, answer) for answer in self.distinct)

    def grades(self, grades: Sequence[Grade]) -> tuple[Grade, ...]:
        """One for each answer, from those of the distinct ones."""
        known = dict(zip(self.distinct, grades, strict=True))
        too_large = Grade(False, 0.0, Reason.TOO_LARGE)
        return tuple(known.get(answer, too_large) for answer in self._answers)


def _unfit(program: Program) -> Execution | None:
    if len(program.source) > MAX_SOURCE_CHARS:
        return Execution(False, Reason.TOO_LARGE, detail="the program's text")
    if not program.inputs:
        return Execution(False, Reason.BAD_INPUT, detail="no input")
    return None


def _validation(program: Program) -> Work:
    """What validates a program: its inputs as literals where it needs that, then both rounds."""
    kinds = (
        []
        if not program.literal_inputs
        else [Call(wire.ARGUMENTS, text) for text in program.inputs if not is_literal(text)]
    )
    rounds = [
        Call(wire.EXPRESSION, text, again) for again in (False, True) for text in program.inputs
    ]
    calls = (*kinds, *rounds)
    return Work(
        program.source,
        calls,
        tuple(program.imports),
        program.banned,
        program.statements,
        gate=len(calls),
    )


def _execution(program: Program, outcomes: Sequence[Outcome]) -> tuple[Execution, list[Gold]]:
    """Read a validation; also what it makes the gold outputs, if it is valid."""
    count = len(program.inputs)
    written, rounds = outcomes[: -2 * count], outcomes[-2 * count :]
    gold: list[Gold] = []

    def invalid(reason: Reason, detail: str = "") -> tuple[Execution, list[Gold]]:
        return Execution(False, reason, detail=detail), []

    for outcome in written:
        if outcome.reason is not Reason.OK:
            return invalid(outcome.reason, f"the input: {outcome.text}")
    for outcome in rounds[:count]:
        if outcome.reason is not Reason.OK:
            return invalid(outcome.reason, outcome.text)
    for first, second in zip(rounds[:count], rounds[count:], strict=True):
        if second.reason is Reason.TIMEOUT:
            return invalid(Reason.TIMEOUT)
        if second.reason is not Reason.OK:
            return invalid(Reason.NONDETERMINISTIC, second.text)
        try:
            gold.append(Gold(first.text, literal.parse(first.text)))
            same = first.text == second.text
            if not same and not literal.same(gold[-1].value, literal.parse(second.text)):
                return invalid(Reason.NONDETERMINISTIC)
        except literal.NotLiteral as error:
            return invalid(Reason.TAMPERED, str(error))
    inputs: tuple[str, ...] = ()
    if program.literal_inputs:
        computed = iter(written)
        inputs = tuple(t if is_literal(t) else next(computed).text for t in program.inputs)
    return Execution(True, Reason.OK, tuple(g.text for g in gold), inputs=inputs), gold


def _as_literals(question: Question) -> Plan[tuple[str, ...] | Grade]:
    """The hidden inputs as literals; or the verdict on all answers, where they are none."""
    expressions = [text for text in question.inputs if not is_literal(text)]
    if not expressions:
        return question.inputs
    calls = tuple(Call(wire.ARGUMENTS, text) for text in expressions)
    ((*outcomes,),) = yield [
        Work(question.program, calls, tuple(question.imports), apart=True, gate=len(calls))
    ]
    for outcome in outcomes:
        if outcome.reason is not Reason.OK or not is_literal(outcome.text):
            detail = f"a hidden input: {outcome.reason} {outcome.text}"
            return Grade(False, 0.0, Reason.MALFORMED, detail)
    written = dict(zip(expressions, (outcome.text for outcome in outcomes), strict=True))
    return tuple(written.get(text, text) for text in question.inputs)


def is_literal(text: str) -> bool:
    """Whether an argument list is one of literals only."""
    try:
        literal.parse_arguments(text)
    except literal.NotLiteral:
        return False
    return True


def _grade_function(outcomes: Sequence[Outcome], gold: Sequence[Gold]) -> Grade:
    grades = [_compare(outcome, value) for outcome, value in zip(outcomes, gold, strict=True)]
    right = sum(grade.solved for grade in grades)
    failed = next((grade for grade in grades if not grade.solved), grades[0])
    return replace(failed, solved=right == len(grades), accuracy=right / len(grades))


def _compare_literal(answer: str, gold: Gold) -> Grade:
    """Grade a predicted output: nothing runs, two literals are compared."""
    if answer == gold.text:
        return Grade(True, 1.0, Reason.SOLVED)
    try:
        right = literal.same(literal.parse(answer), gold.value)
    except literal.TooLarge as error:
        return Grade(False, 0.0, Reason.TOO_LARGE, str(error))
    except literal.NotLiteral as error:
        return Grade(False, 0.0, Reason.NOT_LITERAL, str(error))
    return Grade(right, float(right), Reason.SOLVED if right else Reason.WRONG)


_SOLVED = Grade(True, 1.0, Reason.SOLVED)
_WRONG = Grade(False, 0.0, Reason.WRONG)


def _compare(outcome: Outcome, gold: Gold) -> Grade:
    """Whether an execution gave the gold output; its text is only ever read as a literal."""
    if outcome.reason is not Reason.OK:
        return Grade(False, 0.0, outcome.reason, outcome.text)
    if outcome.text == gold.text:
        return _SOLVED
    if not _LOOSE.search(gold.text) and not _LOOSE.search(outcome.text):
        return _WRONG
    try:
        right = literal.same(literal.parse(outcome.text), gold.value)
    except literal.NotLiteral as error:
        return Grade(False, 0.0, Reason.TAMPERED, str(error))
    return _SOLVED if right else _WRONG
