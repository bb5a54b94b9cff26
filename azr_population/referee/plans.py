"""Plans: what is executed to answer a question, and how the outcomes are graded.

A plan is a generator: it yields works, receives the outcomes of their calls, and returns the
answer. Gold outputs never enter the sandbox, and no hidden input is evaluated in a child of a
student's program: an input that is an expression is first turned into literals by the teacher's
program.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from .jobs import CallOutcome, Plan, canonical
from .sandbox import literal, wire
from .sandbox.wire import Call, SandboxWork
from .verdicts import Execution, Grade, Judgement, Program, Question, Reason

MAX_SOURCE_CHARS = 200_000
_LOOSE = re.compile(r"[.{jJ]|[0-9][eE]")
"""Matches the text of a value that can be written in several ways: a float, complex number, dict or
set. Without a match, two literals from `literal.write` are the same exactly if their texts are."""


class Gold(NamedTuple):
    """A gold output: its text in the form of `literal.write` (right outputs often have equal text),
    and its value."""

    text: str
    value: object

    @classmethod
    def read(cls, text: str) -> Gold:
        """Raises literal.NotLiteral."""
        value = literal.parse(text)
        return cls(literal.write(value), value)


def execute(work: SandboxWork) -> Plan[list[CallOutcome]]:
    """The outcomes of a raw work."""
    ((*outcomes,),) = yield [work]
    return outcomes


def check(program: Program) -> Plan[Execution]:
    """Runs a program twice on each of its inputs, and once more in the way that answers are run."""
    refused = _unfit(program)
    if refused is not None:
        return refused
    program, execution = yield from _with_literals(program)
    if execution is not None:
        return execution
    ((*outcomes,),) = yield [_validation(program)]
    execution, gold = _execution(program, outcomes)
    if execution.valid and program.literal_inputs:
        calls = tuple(Call(wire.LITERAL, text) for text in program.inputs)
        work = SandboxWork(program.source, calls, tuple(program.imports), isolated=len(calls) > 1)
        right = yield from _right(work, gold)
        return execution if right else _VOID
    return execution


def grade(question: Question) -> Plan[tuple[Grade, ...]]:
    """Grades the answers against the question's gold outputs."""
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
    inputs = question.inputs if question.kind == "code_f" else question.inputs[:1]
    program = Program(question.program, inputs, tuple(question.imports), literal_inputs=True)
    program, failed = yield from _with_literals(program)
    if failed is not None:
        detail = f"a gold input: {failed.reason} {failed.detail}"
        return (Grade(False, 0.0, Reason.MALFORMED, detail),) * len(question.answers)
    if question.kind == "code_i":
        answers = _Answers(question.answers, literal.MAX_CHARS)
        grades = yield from _graded_inputs(program, answers, gold[0])
    else:
        answers = _Answers(question.answers, MAX_SOURCE_CHARS)
        grades = yield from _graded_functions(program, answers, gold)
    return grades or (_VOID_GRADE,) * len(question.answers)


def judge(question: Question) -> Plan[Judgement]:
    """Validates the question's program and grades the answers against its outputs."""
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
        literal_inputs=question.kind != "code_o",
    )
    refused = _unfit(program)
    if refused is not None:
        return Judgement(refused)
    program, failed = yield from _with_literals(program)
    if failed is not None:
        return Judgement(failed)
    work = _validation(program)
    answers = _Answers(question.answers if question.kind == "code_i" else (), literal.MAX_CHARS)
    calls = answers.as_inputs(program.inputs) if answers.distinct else ()
    # Answers to a code_f question must not see its program.
    work = work._replace(calls=work.calls + calls, isolated=functions)
    ((*outcomes,),) = yield [work]
    execution, gold = _execution(program, outcomes[: work.required_calls])
    if not execution.valid:
        return Judgement(execution)
    if question.kind == "code_o":
        return Judgement(execution, tuple(_compare_literal(a, gold[0]) for a in question.answers))
    if functions:
        answers = _Answers(question.answers, MAX_SOURCE_CHARS)
        judged = yield from _graded_functions(program, answers, gold)
    else:
        first = outcomes[work.required_calls :]
        judged = yield from _graded_inputs(program, answers, gold[0], first)
    return Judgement(_VOID) if judged is None else Judgement(execution, judged)


_VOID = Execution(
    False, Reason.NONDETERMINISTIC, detail="judged like an answer, it gave another output"
)
_VOID_GRADE = Grade(False, 0.0, _VOID.reason, _VOID.detail)


def _graded_inputs(
    program: Program, answers: _Answers, gold: Gold, outcomes: Sequence[CallOutcome] | None = None
) -> Plan[tuple[Grade, ...] | None]:
    """The grades of predicted inputs; None if the task's gold input, judged after them in the same
    place, is no longer right. `outcomes`: theirs, if they have already run."""
    calls = answers.as_inputs(program.inputs)
    work = SandboxWork(program.source, calls, tuple(program.imports))
    if not answers.distinct:
        return answers.grades([])
    if outcomes is None:
        ((*outcomes,),) = yield [work]
    for last in (False, True):
        grades = [_compare(outcome, gold) for outcome in outcomes]
        count = len(answers.distinct)
        if all(grade.solved for grade in grades[count:]):
            for at, text in enumerate(answers.distinct):
                if not grades[at].solved and any(
                    _same_input(text, right) for right in program.inputs
                ):
                    grades[at] = _SOLVED
            return answers.grades(grades[:count])
        if not last:  # something went wrong in the batch
            ((*outcomes,),) = yield [work._replace(alone=True)]
    return None


def _same_input(left: str, right: str) -> bool:
    """Whether two argument lists of literals have the same values."""
    if left == right:
        return True
    alike = "".join(left.split()) == "".join(right.split())  # parsing costs more
    return alike and canonical(left) == canonical(right) is not None


def _graded_functions(
    program: Program, answers: _Answers, gold: Sequence[Gold]
) -> Plan[tuple[Grade, ...] | None]:
    """The grades of predicted programs; None if the task's gold program is not judged right."""
    calls = tuple(Call(wire.LITERAL, text) for text in program.inputs)
    teacher = program.source if answers.distinct else ""
    sources = list(dict.fromkeys([*answers.distinct, teacher] if teacher else answers.distinct))
    # A separate child for each: a program may read everything in its process, so neither the
    # teacher's program nor another student's may ever have been there.
    works = [
        SandboxWork(source, calls, tuple(program.imports), isolated=True) for source in sources
    ]
    results = (yield works) if works else []
    grades = [_grade_function(outcomes, gold) for outcomes in results]
    at = sources.index(teacher) if teacher else -1
    if teacher and not grades[at].solved:
        if not (yield from _right(works[at]._replace(alone=True), gold)):
            return None
        grades[at] = _SOLVED
    return answers.grades(grades[: len(answers.distinct)])


def _right(work: SandboxWork, gold: Sequence[Gold]) -> Plan[bool]:
    """Whether the calls give the gold outputs; those that do not are tried again alone."""
    (outcomes,) = yield [work]
    if not _grade_function(outcomes, gold).solved and not work.alone:
        (outcomes,) = yield [work._replace(alone=True)]
    return _grade_function(outcomes, gold).solved


class _Answers:
    """The answers to a question; equal answers are executed once."""

    def __init__(self, answers: Sequence[str], max_chars: int) -> None:
        self._answers = answers
        self._max_chars = max_chars
        self.distinct = list(dict.fromkeys(a for a in answers if len(a) <= max_chars))

    def as_inputs(self, right: Sequence[str]) -> tuple[Call, ...]:
        """Their calls, followed by the call of the gold input."""
        return tuple(Call(wire.LITERAL, text) for text in (*self.distinct, *right))

    def grades(self, grades: Sequence[Grade]) -> tuple[Grade, ...]:
        """The grade of each answer from those of the distinct answers."""
        by_answer = dict(zip(self.distinct, grades, strict=True))
        too_large = Grade(False, 0.0, Reason.TOO_LARGE)
        return tuple(by_answer.get(answer, too_large) for answer in self._answers)


def _unfit(program: Program) -> Execution | None:
    if len(program.source) > MAX_SOURCE_CHARS:
        return Execution(False, Reason.TOO_LARGE, detail="the program's text")
    if not program.inputs:
        return Execution(False, Reason.BAD_INPUT, detail="no input")
    return None


def _with_literals(program: Program) -> Plan[tuple[Program, Execution | None]]:
    """The program with its inputs as literals if it must have literals, or why that is impossible.

    Answers get literals. Values that only an expression can make (one list twice in another, an
    interned string) would let a program distinguish validation from grading.
    """
    expressions = [text for text in program.inputs if not is_literal(text)]
    if not expressions or not program.literal_inputs:
        return program, None
    calls = tuple(
        Call(wire.ARGUMENTS, text, again) for again in (False, True) for text in expressions
    )
    work = SandboxWork(
        program.source, calls, tuple(program.imports), isolated=True, required_calls=len(calls)
    )
    ((*outcomes,),) = yield [work]
    first, second = outcomes[: len(expressions)], outcomes[len(expressions) :]
    for outcome in first:
        if outcome.reason is not Reason.OK:
            detail = f"the input: {outcome.text}"
            return program, Execution(False, outcome.reason, detail=detail)
        if not is_literal(outcome.text):
            return program, Execution(False, Reason.TAMPERED, detail="the input")
    if first != second:
        return program, Execution(False, Reason.NONDETERMINISTIC, detail="the input")
    written = dict(zip(expressions, (outcome.text for outcome in first), strict=True))
    inputs = tuple(written.get(text, text) for text in program.inputs)
    return replace(program, inputs=inputs), None


def _validation(program: Program) -> SandboxWork:
    """The work that validates a program: two rounds, the second in reverse order."""
    kinds = {text: wire.LITERAL if is_literal(text) else wire.EXPRESSION for text in program.inputs}
    first = [Call(kinds[text], text) for text in program.inputs]
    second = [call._replace(again=True) for call in reversed(first)]
    calls = (*first, *second)
    return SandboxWork(program.source, calls, tuple(program.imports), required_calls=len(calls))


def _execution(program: Program, outcomes: Sequence[CallOutcome]) -> tuple[Execution, list[Gold]]:
    """The execution from a validation's outcomes and, if it is valid, the gold outputs."""
    count = len(program.inputs)
    gold: list[Gold] = []

    def invalid(reason: Reason, detail: str = "") -> tuple[Execution, list[Gold]]:
        return Execution(False, reason, detail=detail), []

    for outcome in outcomes[:count]:
        if outcome.reason is not Reason.OK:
            return invalid(outcome.reason, outcome.text)
    for first, second in zip(outcomes[:count], reversed(outcomes[count:]), strict=True):
        if second.reason in (Reason.TIMEOUT, Reason.LOST):
            return invalid(second.reason)
        if second.reason is not Reason.OK:
            return invalid(Reason.NONDETERMINISTIC, second.text)
        try:
            gold.append(Gold(first.text, literal.parse(first.text)))
            same = first.text == second.text
            if not same and not literal.same(gold[-1].value, literal.parse(second.text)):
                return invalid(Reason.NONDETERMINISTIC)
        except literal.NotLiteral as error:
            return invalid(Reason.TAMPERED, str(error))
    inputs = program.inputs if program.literal_inputs else ()
    return Execution(True, Reason.OK, tuple(g.text for g in gold), inputs=inputs), gold


def is_literal(text: str) -> bool:
    """Whether an argument list has only literals."""
    try:
        literal.parse_arguments(text)
    except literal.NotLiteral:
        return False
    return True


def _grade_function(outcomes: Sequence[CallOutcome], gold: Sequence[Gold]) -> Grade:
    grades = [_compare(outcome, value) for outcome, value in zip(outcomes, gold, strict=True)]
    right = sum(grade.solved for grade in grades)
    failed = next((grade for grade in grades if not grade.solved), grades[0])
    return replace(failed, solved=right == len(grades), accuracy=right / len(grades))


def _compare_literal(answer: str, gold: Gold) -> Grade:
    """Grades a predicted output by comparing two literals; nothing is executed."""
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


def _compare(outcome: CallOutcome, gold: Gold) -> Grade:
    """Grades an execution against the gold output; its text is only ever read as a literal."""
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
