"""Judges solutions of HumanEval+ and MBPP+ problems by evalplus's rules, in the referee's sandbox.

The expected outputs are computed there too, from the canonical solutions.
"""

import marshal
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from azr_population.errors import UserError
from azr_population.evals.benchmarks import FunctionProblem
from azr_population.evals.grading import sandbox
from azr_population.evals.grading.rules import (
    MalformedOutput,
    SolutionOutput,
    first_wrong,
    outputs_and_error,
)
from azr_population.evals.grading.sandbox import PASSED, WRONG, EvalVerdict
from azr_population.referee import Reason
from azr_population.referee.jobs import CallOutcome

CANONICAL_SECONDS = (0.25, 1.0, 4.0, 16.0, 64.0)
"""Limits of CPU seconds that a canonical solution is tried with, for all inputs. The sandbox hides
the clock, so the first that is enough stands for its time."""
MIN_SECONDS = 4.0
INPUTS = 4.0
TIME_FACTOR = 4.0
"""A solution has `MIN_SECONDS` of CPU time for the base inputs, again for the plus inputs, and
`MIN_SECONDS / INPUTS` for one input. Where the canonical solution needs more than the first of
`CANONICAL_SECONDS`, it has `TIME_FACTOR` times that limit, for one input or all. evalplus gives an
input 1 second of wall-clock time, or 4 times what the canonical solution took, and 60 to all."""
Limits = tuple[float, float]
"""Seconds for all inputs, and for one; 0: no limit for one."""
Solution = tuple[FunctionProblem, str]


@dataclass(frozen=True)
class Reference:
    """What the canonical solution of a problem returns for the base and the plus inputs."""

    outputs: tuple[list[SolutionOutput], list[SolutionOutput]]
    seconds: float
    """The first of `CANONICAL_SECONDS` that is enough."""


class FunctionJudge(AbstractContextManager["FunctionJudge"]):
    """Judges solutions by the outputs of canonical ones; a context manager."""

    def __init__(self, workers: int = 0, min_seconds: float = MIN_SECONDS) -> None:
        self.workers = workers
        self.min_seconds = min_seconds
        self._stack = ExitStack()
        self._referees: dict[Limits, sandbox.Referee] = {}
        self._references: dict[int, tuple[FunctionProblem, Reference]] = {}
        """By identity: hashing a problem takes a while."""

    def __exit__(self, *exception: object) -> None:
        self._referees.clear()
        self._stack.close()

    def judge(self, solutions: Sequence[Solution]) -> list[EvalVerdict]:
        """Verdicts in order. Raises UserError for a problem whose canonical solution fails.

        Base inputs come first, where most wrong solutions fail; what passes them is run on the
        plus inputs, in another process, as in evalplus.
        """
        references = self._references_of([problem for problem, _ in solutions])
        verdicts = {
            number: EvalVerdict(False, why, base_passed=False)
            for number, (_, solution) in enumerate(solutions)
            if (why := sandbox.unfit(solution))
        }
        for plus in (False, True):
            groups: dict[Limits, list[int]] = defaultdict(list)
            for number, reference in enumerate(references):
                if number not in verdicts:
                    groups[self._limits(reference)].append(number)
            for limits, numbers in sorted(groups.items()):
                calls = (_call(*solutions[number], plus) for number in numbers)
                outcomes = sandbox.run(self._referee(limits), calls)
                for number, outcome in zip(numbers, outcomes, strict=True):
                    verdict = _verdict(solutions[number], references[number], plus, outcome)
                    if plus or not verdict.passed or not solutions[number][0].plus_inputs:
                        verdicts[number] = verdict
        return [verdicts[number] for number in range(len(solutions))]

    def _references_of(self, problems: Sequence[FunctionProblem]) -> list[Reference]:
        """In order; canonical solutions are run when their problem is first asked."""
        new = {id(p): p for p in problems if id(p) not in self._references}
        for problem, reference in _references(list(new.values()), self.workers):
            self._references[id(problem)] = problem, reference
        return [self._references[id(problem)][1] for problem in problems]

    def _referee(self, limits: Limits) -> sandbox.Referee:
        """Opened on first use and cached: workers take a while to start."""
        if limits not in self._referees:
            seconds, part = limits
            self._referees[limits] = self._stack.enter_context(
                sandbox.open_referee(seconds, self.workers, part)
            )
        return self._referees[limits]

    def _limits(self, reference: Reference) -> Limits:
        if reference.seconds == CANONICAL_SECONDS[0]:
            return self.min_seconds, self.min_seconds / INPUTS
        return max(self.min_seconds, TIME_FACTOR * reference.seconds), 0.0


def _references(
    problems: Sequence[FunctionProblem], workers: int
) -> Iterator[tuple[FunctionProblem, Reference]]:
    for seconds in CANONICAL_SECONDS:
        if not problems:
            return
        calls = (_call(p, p.canonical, plus) for p in problems for plus in (False, True))
        slow = []
        with sandbox.open_referee(seconds, workers) as referee:
            outcomes = sandbox.run(referee, calls)
            for problem, both in zip(problems, zip(outcomes, outcomes, strict=True), strict=True):
                if Reason.TIMEOUT in [outcome.reason for outcome in both]:
                    slow.append(problem)
                else:
                    base, plus = both
                    outputs = _outputs(problem, False, base), _outputs(problem, True, plus)
                    yield problem, Reference(outputs, seconds)
        problems = slow
    if problems:
        raise _broken(problems[0], f"it takes more than {CANONICAL_SECONDS[-1]:g} seconds")


def _verdict(
    solution: Solution, reference: Reference, plus: bool, outcome: CallOutcome
) -> EvalVerdict:
    problem, program = solution
    if outcome.reason is not Reason.OK:
        return EvalVerdict(False, str(outcome.reason), outcome.text[:200], program, plus)
    try:
        outputs, error = outputs_and_error(outcome.text)
    except MalformedOutput as malformed:
        return EvalVerdict(False, str(Reason.TAMPERED), str(malformed), program, plus)
    wrong = first_wrong(problem, problem.inputs[plus], outputs, reference.outputs[plus])
    if wrong is None:
        return EvalVerdict(True, PASSED, "", program, True)
    if wrong >= len(outputs):
        return EvalVerdict(False, "error", error[:200], program, plus)
    return EvalVerdict(False, WRONG, f"{'plus' if plus else 'base'} input {wrong}", program, plus)


def _call(problem: FunctionProblem, solution: str, plus: bool) -> str:
    packed = marshal.dumps(problem.inputs[plus])
    return f"call_all({solution!r}, {problem.entry_point!r}, {packed!r}, time_part)"


def _outputs(problem: FunctionProblem, plus: bool, outcome: CallOutcome) -> list[SolutionOutput]:
    if outcome.reason is not Reason.OK:
        raise _broken(problem, f"{outcome.reason} {outcome.text}")
    outputs, error = outputs_and_error(outcome.text)
    if error or len(outputs) != len(problem.inputs[plus]):
        raise _broken(problem, error)
    return outputs


def _broken(problem: FunctionProblem, why: str) -> UserError:
    return UserError(
        f"{problem.id}: the canonical solution does not run through its tests ({why.strip()}); the "
        "file of the benchmark is damaged, or this Python is not one that it was made for"
    )
