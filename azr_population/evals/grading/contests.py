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
from azr_population.evals.grading.sandboxed import encode, stripped_lines
from azr_population.referee import Reason
from azr_population.referee.jobs import CallOutcome

SECONDS = 6.0
"""Of CPU time for one test; LiveCodeBench takes wall-clock time."""
_TOGETHER = 8
"""Tests that run one after the other in one process; the first, where most fail, runs alone."""


def judge_contests(
    solutions: Sequence[tuple[ContestProblem, str]], workers: int = 0
) -> list[EvalVerdict]:
    """Verdicts in order; a solution is run up to the first test that it does not pass."""
    tests = {problem.id: problem.read_tests() for problem, _ in solutions}
    verdicts: dict[int, EvalVerdict] = {}
    for number, (problem, solution) in enumerate(solutions):
        if why := sandbox.unfit(solution):
            verdicts[number] = EvalVerdict(False, why)
        elif not tests[problem.id]:
            verdicts[number] = EvalVerdict(False, "no tests", answer=solution)
    start = 0
    with sandbox.open_referee(SECONDS * _TOGETHER, workers, SECONDS) as referee:
        while len(verdicts) < len(solutions):
            stop = start + (_TOGETHER if start else 1)
            running = [number for number in range(len(solutions)) if number not in verdicts]
            calls = (_call(*solutions[n], tests[solutions[n][0].id][start:stop]) for n in running)
            for number, outcome in zip(running, sandbox.run(referee, calls), strict=True):
                problem, solution = solutions[number]
                every = tests[problem.id]
                reason, test, detail = _verdict(problem, every[start:stop], outcome)
                if reason != PASSED or stop >= len(every):
                    at = f"test {start + test}: {detail}" if reason != PASSED else ""
                    verdicts[number] = EvalVerdict(reason == PASSED, reason, at[:300], solution)
            start = stop
    return [verdicts[number] for number in range(len(solutions))]


def _call(problem: ContestProblem, solution: str, tests: Tests) -> str:
    typed = [input for input, _ in tests]
    return f"run_tests({solution!r}, {problem.function!r}, {typed!r}, time_part)"


def _verdict(problem: ContestProblem, tests: Tests, outcome: CallOutcome) -> tuple[str, int, str]:
    """The reason, and the first test that is not passed with what came of it."""
    if outcome.reason is not Reason.OK:
        return str(outcome.reason), 0, outcome.text
    try:
        outputs, error = outputs_and_error(outcome.text)
    except MalformedOutput as malformed:
        return str(Reason.TAMPERED), 0, str(malformed)
    for number, (_, expected) in enumerate(tests):
        if number >= len(outputs):
            return "error", number, error
        if not _is_right(problem, outputs[number], expected):
            return WRONG, number, ""
    return PASSED, 0, ""


def _is_right(problem: ContestProblem, output: SolutionOutput, expected: str) -> bool:
    """Whether a method returned that JSON value, or a script printed those lines."""
    right = json.loads(expected) if problem.function else stripped_lines(expected)
    value = output.value
    if output.same_text(SolutionOutput(*encode(right))):
        return True
    if problem.function or not isinstance(value, str):
        return value is not UNKNOWN and bool(value == right)
    printed, wanted = value.split("\n"), right.split("\n")
    return len(printed) == len(wanted) and all(map(_same_line, printed, wanted))


def _same_line(printed: str, expected: str) -> bool:
    if printed == expected:
        return True
    try:
        return list(map(Decimal, printed.split())) == list(map(Decimal, expected.split()))
    except InvalidOperation:
        return False
