"""Judges solutions of contest problems by LiveCodeBench's rules, in the referee's sandbox.

The rules are those of `testing_util.py` in LiveCodeBench as AZR ships it: printed lines are
compared without blanks around them, as texts or as decimal numbers; a method's value by `==`.
"""

import json
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from azr_population.evals.benchmarks import ContestProblem, Tests
from azr_population.evals.grading import sandbox
from azr_population.evals.grading.rules import (
    UNKNOWN,
    MalformedOutput,
    SolutionOutput,
    outputs_and_error,
)
from azr_population.evals.grading.sandbox import PASSED, WRONG, EvalVerdict
from azr_population.evals.grading.sandboxed import line_of, stripped_lines, text_digest
from azr_population.referee import Reason
from azr_population.referee.jobs import CallOutcome

SECONDS = 6.0
"""Of processor time for one test; LiveCodeBench's own limit, there by the wall clock."""
_TOGETHER = 8
"""Tests that run one after the other in one child, but for the first, which fails most."""
_BATCH = 128


def judge_contests(
    solutions: Sequence[tuple[ContestProblem, str]], workers: int = 0
) -> list[EvalVerdict]:
    """Verdicts in order; a solution is run up to the first test that it does not pass."""
    verdicts: list[EvalVerdict] = []
    with (
        sandbox.open_referee(SECONDS, workers, numpy=True) as one,
        sandbox.open_referee(SECONDS * _TOGETHER, workers, numpy=True) as more,
    ):
        for start in range(0, len(solutions), _BATCH):
            verdicts += _judged(solutions[start : start + _BATCH], one, more)
    return verdicts


def _judged(
    batch: Sequence[tuple[ContestProblem, str]], one: sandbox.Referee, more: sandbox.Referee
) -> list[EvalVerdict]:
    verdicts: dict[int, EvalVerdict] = {}
    tests = {problem.id: problem.read_tests() for problem, _ in batch}
    for number, (problem, solution) in enumerate(batch):
        if why := sandbox.unfit(solution):
            verdicts[number] = EvalVerdict(False, why)
        elif not tests[problem.id]:
            verdicts[number] = EvalVerdict(False, "no tests", answer=solution)
    start = 0
    while len(verdicts) < len(batch):
        stop = start + (_TOGETHER if start else 1)
        running = [number for number in range(len(batch)) if number not in verdicts]
        calls = [_call(*batch[n], tests[batch[n][0].id][start:stop]) for n in running]
        outcomes = sandbox.run(more if start else one, calls)
        for number, outcome in zip(running, outcomes, strict=True):
            problem, solution = batch[number]
            every = tests[problem.id]
            reason, test, detail = _verdict(problem, every[start:stop], outcome)
            if reason != PASSED or stop >= len(every):
                at = f"test {start + test}: {detail}" if reason != PASSED else ""
                verdicts[number] = EvalVerdict(reason == PASSED, reason, at[:300], solution)
        start = stop
    return [verdicts[number] for number in range(len(batch))]


def _call(problem: ContestProblem, solution: str, tests: Tests) -> str:
    return f"run_tests({solution!r}, {problem.function!r}, {[given for given, _ in tests]!r})"


def _verdict(problem: ContestProblem, tests: Tests, outcome: CallOutcome) -> tuple[str, int, str]:
    """The reason, and the first test that is not passed with what came of it."""
    if outcome.reason is not Reason.OK:
        return str(outcome.reason), 0, outcome.text
    right = _same_value if problem.function else _same_lines
    try:
        outputs, error = outputs_and_error(outcome.text)
    except MalformedOutput as malformed:
        return str(Reason.TAMPERED), 0, str(malformed)
    for number, (_, expected) in enumerate(tests):
        if number >= len(outputs):
            return "error", number, error
        if not right(outputs[number], expected):
            return WRONG, number, ""
    return PASSED, 0, ""


def _same_value(output: SolutionOutput, expected: str) -> bool:
    """Whether a method returned that JSON value."""
    right = json.loads(expected)
    if output.same_text(SolutionOutput(*line_of(right))):
        return True
    return output.value is not UNKNOWN and bool(output.value == right)


def _same_lines(output: SolutionOutput, expected: str) -> bool:
    """Whether those lines were printed, as texts or as decimal numbers."""
    wanted = stripped_lines(expected)
    if output.kind == "hash":
        return output.text == text_digest("\n".join(wanted))
    printed = output.text.split("\n")
    return len(printed) == len(wanted) and all(map(_same_line, printed, wanted))


def _same_line(printed: str, wanted: str) -> bool:
    if printed == wanted:
        return True
    try:
        return list(map(Decimal, printed.split())) == list(map(Decimal, wanted.split()))
    except InvalidOperation:
        return False
