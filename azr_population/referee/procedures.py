"""Procedures: what is executed to answer a question, and how the outcomes are graded.

A procedure is a generator: it yields works, receives the outcomes of their calls, and returns the
answer. Gold outputs never enter the sandbox, and no hidden input is evaluated in a child of a
student's program: an input that is an expression is first turned into literals by the teacher's
program.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from .jobs import CallOutcome, Outcomes, Procedure
from .sandbox import literal, wire
from .sandbox.literal import canonical_arguments
from .sandbox.wire import Call, SandboxWork
from .verdicts import Execution, Grade, Judgement, Program, Question, Reason

TYPES = ("code_o", "code_i", "code_f")
MAX_SOURCE_CHARS = 200_000
_SOLVED = Grade(True, 1.0, Reason.SOLVED)
_WRONG = Grade(False, 0.0, Reason.WRONG)
_TOO_LARGE = Grade(False, 0.0, Reason.TOO_LARGE)
_NOT_ITS_OWN = (Reason.TIMEOUT, Reason.LOST)
"""Reasons that may be a busy machine's."""
_VOID = Execution(
    False, Reason.NONDETERMINISTIC, detail="judged like an answer, it gave another output"
)


class Gold(NamedTuple):
    """A gold output: its text (right outputs often have the same) and its value."""

    text: str
    value: object

    @classmethod
    def read(cls, text: str) -> "Gold":
        """Raises literal.NotLiteral."""
        return cls(text, literal.parse(text))

    def equals(self, text: str) -> bool:
        """Whether a literal has the same value. Raises literal.NotLiteral."""
        return text == self.text or literal.same(literal.parse(text), self.value)


def execute(work: SandboxWork) -> Procedure[Outcomes]:
    """The outcomes of a raw work."""
    (outcomes,) = yield [work]
    return outcomes


def check(program: Program) -> Procedure[Execution]:
    """Runs a program twice on each of its inputs, and once more in the way that answers are run."""
    execution = yield from _validated(program)
    if not (execution.valid and program.literal_inputs):
        return execution
    gold = [Gold.read(text) for text in execution.outputs]
    calls = [Call(wire.LITERAL, text) for text in execution.inputs]
    work = _work(program, calls)
    (outcomes,) = yield [work]
    verdict = yield from _second_chance(work, gold, _grade_function(outcomes, gold))
    return execution if verdict.solved else _VOID


def grade(question: Question) -> Procedure[tuple[Grade, ...]]:
    """Grades the answers against the question's gold outputs."""
    if question.kind not in TYPES:
        raise ValueError(f"unknown task type {question.kind!r}: {', '.join(TYPES)}")
    grades = yield from _grades(question)
    if isinstance(grades, Execution):
        return (Grade(False, 0.0, grades.reason, grades.detail),) * len(question.answers)
    return grades


def judge(question: Question) -> Procedure[Judgement]:
    """Validates the question's program and grades the answers against its outputs."""
    if question.kind == "malformed":
        return Judgement(_malformed())
    if question.kind == "code_f" and not question.program:  # the pairs are given
        execution = Execution(True, Reason.OK, question.outputs)
    else:
        execution = yield from _validated(_program_of(question))
        if not execution.valid:
            return Judgement(execution)
        inputs = execution.inputs or question.inputs
        question = replace(question, inputs=inputs, outputs=execution.outputs)
    grades = yield from _grades(question)
    return Judgement(grades) if isinstance(grades, Execution) else Judgement(execution, grades)


def _program_of(question: Question) -> Program:
    inputs = question.inputs if question.kind == "code_f" else question.inputs[:1]
    literal_inputs = question.kind != "code_o"
    return Program(question.program, inputs, question.imports, literal_inputs)


def _malformed(detail: str = "") -> Execution:
    return Execution(False, Reason.MALFORMED, detail=detail)


def _work(program: Program, calls: Sequence[Call], **more: Any) -> SandboxWork:
    return SandboxWork(program.source, tuple(calls), tuple(program.imports), **more)


def _validated(program: Program) -> Procedure[Execution]:
    """Two rounds of a program on its inputs, the second in reverse order."""
    if len(program.source) > MAX_SOURCE_CHARS:
        return Execution(False, Reason.TOO_LARGE, detail="the program's text")
    if not program.inputs:
        return Execution(False, Reason.BAD_INPUT, detail="no input")
    inputs = program.inputs
    if program.literal_inputs:
        literals = yield from _literal_inputs(program)
        if isinstance(literals, Execution):
            return literals
        inputs = literals
    first = [Call(wire.EXPRESSION, text) for text in inputs]
    second = [call._replace(again=True) for call in reversed(first)]
    (outcomes,) = yield [_work(program, [*first, *second], stop_at_failure=True)]
    firsts, seconds = outcomes[: len(inputs)], outcomes[len(inputs) :][::-1]
    for outcome in firsts:
        if outcome.reason is not Reason.OK:
            return Execution(False, outcome.reason, detail=outcome.text)
    try:
        gold = [Gold.read(outcome.text) for outcome in firsts]
    except literal.NotLiteral as error:
        return Execution(False, Reason.TAMPERED, detail=str(error))
    for verdict in map(_compare, seconds, gold):
        if not verdict.solved:
            is_reason = verdict.reason in (*_NOT_ITS_OWN, Reason.TAMPERED)
            reason = verdict.reason if is_reason else Reason.NONDETERMINISTIC
            return Execution(False, reason, detail=verdict.detail)
    outputs = tuple(value.text for value in gold)
    return Execution(True, Reason.OK, outputs, inputs=inputs if program.literal_inputs else ())


def _literal_inputs(program: Program) -> Procedure[tuple[str, ...] | Execution]:
    """The program's inputs as literals, or why that is impossible.

    Answers get literals. Values that only an expression can make (one list twice in another, an
    interned string) would let a program distinguish validation from grading.
    """
    expressions = [text for text in program.inputs if canonical_arguments(text) is None]
    if not expressions:
        return program.inputs
    first = [Call(wire.ARGUMENTS, text) for text in expressions]
    second = [call._replace(again=True) for call in first]
    work = _work(program, [*first, *second], stop_at_failure=True)
    (outcomes,) = yield [work]
    firsts, seconds = outcomes[: len(first)], outcomes[len(first) :]
    for outcome in firsts:
        if outcome.reason is not Reason.OK:
            return Execution(False, outcome.reason, detail=f"the input: {outcome.text}")
        if canonical_arguments(outcome.text) is None:
            return Execution(False, Reason.TAMPERED, detail="the input")
    for outcome, again in zip(firsts, seconds, strict=True):
        if again != outcome:
            reason = again.reason if again.reason in _NOT_ITS_OWN else Reason.NONDETERMINISTIC
            return Execution(False, reason, detail="the input")
    written = dict(zip(expressions, (outcome.text for outcome in firsts), strict=True))
    return tuple(written.get(text, text) for text in program.inputs)


def _grades(question: Question) -> Procedure[tuple[Grade, ...] | Execution]:
    """The grade of each answer, or why the question cannot be graded; equal answers are executed
    once."""
    try:
        gold = [Gold.read(text) for text in question.outputs]
    except literal.NotLiteral as error:
        return _malformed(f"the gold output: {error}")
    functions = question.kind == "code_f"
    if not gold or (functions and len(question.inputs) != len(gold)):
        return _malformed("as many gold outputs as hidden inputs are needed")
    if question.kind == "code_o":
        return tuple(_compare_literal(answer, gold[0]) for answer in question.answers)
    program = _program_of(question)
    inputs = yield from _literal_inputs(program)
    if isinstance(inputs, Execution) and inputs.reason in _NOT_ITS_OWN:
        inputs = yield from _literal_inputs(program)
    if isinstance(inputs, Execution):
        lost = inputs.reason is Reason.LOST
        return inputs if lost else _malformed(f"a gold input: {inputs.reason} {inputs.detail}")
    longest = MAX_SOURCE_CHARS if functions else literal.MAX_CHARS
    answers = list(dict.fromkeys(a for a in question.answers if len(a) <= longest))
    graded = _graded_functions if functions else _graded_inputs
    grades = (yield from graded(replace(program, inputs=inputs), answers, gold)) if answers else []
    if grades is None:
        return _VOID
    by_answer = dict(zip(answers, grades, strict=True))
    return tuple(by_answer.get(answer, _TOO_LARGE) for answer in question.answers)


def _graded_inputs(
    program: Program, answers: Sequence[str], gold: Sequence[Gold]
) -> Procedure[list[Grade] | None]:
    """The grades of predicted inputs; None if the task's gold input, judged after them in the same
    place, is no longer right. Equal inputs are executed once, and an answer that is the gold input
    has its verdict."""
    grades: dict[str, Grade] = {}
    texts: dict[str, str] = {}
    for answer in answers:
        try:
            texts[answer] = literal.write_arguments(*literal.parse_arguments(answer))
        except literal.NotLiteral as error:
            grades[answer] = _unreadable(error)
    right = [canonical_arguments(text) or text for text in program.inputs]
    distinct = [text for text in dict.fromkeys(texts.values()) if text not in right] + right
    (outcomes,) = yield [_work(program, [Call(wire.LITERAL, text) for text in distinct])]
    verdicts = {t: _compare(o, gold[0]) for t, o in zip(distinct, outcomes, strict=True)}
    for text in right:
        work = _work(program, [Call(wire.LITERAL, text)])
        verdicts[text] = yield from _second_chance(work, gold, verdicts[text])
        if not verdicts[text].solved:
            return None
    return [grades.get(answer) or verdicts[texts[answer]] for answer in answers]


def _graded_functions(
    program: Program, answers: Sequence[str], gold: Sequence[Gold]
) -> Procedure[list[Grade] | None]:
    """The grades of predicted programs; None if the task's gold program is not judged right."""
    calls = [Call(wire.LITERAL, text) for text in program.inputs]
    teacher = [program.source] if program.source else []
    # A separate child for each: a program may read everything in its process, so neither the
    # teacher's program nor another student's may ever have been there.
    works = {
        source: _work(replace(program, source=source), calls) for source in (*answers, *teacher)
    }
    results = yield list(works.values())
    grades = {
        source: _grade_function(outcomes, gold)
        for source, outcomes in zip(works, results, strict=True)
    }
    for source in teacher:
        grades[source] = yield from _second_chance(works[source], gold, grades[source])
        if not grades[source].solved:
            return None
    return [grades[answer] for answer in answers]


def _second_chance(work: SandboxWork, gold: Sequence[Gold], verdict: Grade) -> Procedure[Grade]:
    """The verdict on a task's gold input or program. Out of time, it is judged once more: on a busy
    machine that says nothing of the task."""
    if verdict.reason in _NOT_ITS_OWN:
        (outcomes,) = yield [work]
        verdict = _grade_function(outcomes, gold)
    return verdict


def _grade_function(outcomes: Outcomes, gold: Sequence[Gold]) -> Grade:
    grades = [_compare(outcome, value) for outcome, value in zip(outcomes, gold, strict=True)]
    right = sum(grade.solved for grade in grades)
    failed = next((grade for grade in grades if not grade.solved), grades[0])
    return replace(failed, solved=right == len(grades), accuracy=right / len(grades))


def _compare_literal(answer: str, gold: Gold) -> Grade:
    """Grades a predicted output by comparing two literals; nothing is executed."""
    try:
        return _SOLVED if gold.equals(answer) else _WRONG
    except literal.NotLiteral as error:
        return _unreadable(error)


def _unreadable(error: literal.NotLiteral) -> Grade:
    large = isinstance(error, literal.TooLarge)
    return Grade(False, 0.0, Reason.TOO_LARGE if large else Reason.NOT_LITERAL, str(error))


def _compare(outcome: CallOutcome, gold: Gold) -> Grade:
    """Grades an execution against the gold output; its text is only ever read as a literal."""
    if outcome.reason is not Reason.OK:
        return Grade(False, 0.0, outcome.reason, outcome.text)
    try:
        return _SOLVED if gold.equals(outcome.text) else _WRONG
    except literal.NotLiteral as error:
        return Grade(False, 0.0, Reason.TAMPERED, str(error))
