"""Judges solutions of HumanEval and MBPP problems by evalplus's rules, in the referee's sandbox."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack

from azr_population.evals.benchmarks import FunctionProblem
from azr_population.evals.grading import sandbox
from azr_population.evals.grading.outputs import Forged, outputs_and_error
from azr_population.evals.grading.references import (
    SHORTEST,
    Reference,
    References,
    call_task,
)
from azr_population.evals.grading.rules import first_wrong
from azr_population.evals.grading.verdict import NO_ANSWER, PASSED, WRONG, Verdict
from azr_population.referee import Reason
from azr_population.referee.jobs import Outcome

Solution = tuple[FunctionProblem, str]
LEAST_SECONDS = 4.0
INPUTS = 4.0
TIME_FACTOR = 4.0
"""Processor time that a solution has for the base inputs, and again for the plus inputs: the least,
of which one input may take a part (`LEAST_SECONDS / INPUTS`); or, where `SHORTEST` was not enough
for the canonical one, the factor on what was, for one input or all. evalplus gives each input 1
second by the wall, or 4 times what the canonical one took, and 60 to all."""
Limits = tuple[float, float]
"""Seconds for all inputs, and for one; 0: no limit of its own."""
_LONGEST = 200_000


class FunctionJudge(AbstractContextManager["FunctionJudge"]):
    """Judges solutions, knowing what is right from the canonical ones; a context manager."""

    def __init__(
        self, references: References, workers: int = 0, least_seconds: float = LEAST_SECONDS
    ) -> None:
        self.references = references
        self.workers = workers
        self.least_seconds = least_seconds
        self._stack = ExitStack()
        self._referees: dict[tuple[Limits, bool], sandbox.Referee] = {}

    def __exit__(self, *exception: object) -> None:
        self._referees.clear()
        self._stack.close()

    def judge(self, solutions: Sequence[Solution]) -> list[Verdict]:
        """Verdicts in order.

        Base inputs come first, where most wrong solutions fail; what passes them is run on the
        plus inputs, in a process of its own, as evalplus does.
        """
        verdicts: dict[int, Verdict] = {}
        references = self.references.of([problem for problem, _ in solutions])
        for number, (_, solution) in enumerate(solutions):
            if not solution.strip():
                verdicts[number] = Verdict(False, NO_ANSWER, base_passed=False)
            elif len(solution) > _LONGEST:
                verdicts[number] = Verdict(False, "too long", base_passed=False)
        for plus in (False, True):
            waiting = [number for number in range(len(solutions)) if number not in verdicts]
            for number, verdict in self._stage(plus, waiting, solutions, references):
                if plus or not verdict.passed or not solutions[number][0].plus_inputs:
                    verdicts[number] = verdict
        return [verdicts[number] for number in range(len(solutions))]

    def _stage(
        self,
        plus: bool,
        waiting: Sequence[int],
        solutions: Sequence[Solution],
        references: dict[str, Reference],
    ) -> Iterator[tuple[int, Verdict]]:
        """Verdicts on base or plus inputs as they are reached."""
        groups: dict[tuple[Limits, bool], list[int]] = defaultdict(list)
        for number in waiting:
            problem, solution = solutions[number]
            limits = self._limits(references[problem.id])
            groups[limits, "numpy" in solution].append(number)
        for (limits, numpy), numbers in sorted(groups.items()):
            first = dict.fromkeys(numbers, 0)
            while first:
                asked = {n: (solutions[n], references[solutions[n][0].id]) for n in first}
                works = (
                    call_task(*solution, known.part(plus)[0], first[number])
                    for number, (solution, known) in asked.items()
                )
                outcomes = sandbox.run(self._referee(limits, numpy), works)
                later = {}
                for (number, about), outcome in zip(asked.items(), outcomes, strict=True):
                    verdict = _verdict(*about, plus, outcome, first[number])
                    if isinstance(verdict, int):
                        later[number] = verdict
                    else:
                        yield number, verdict
                first = later

    def _referee(self, limits: Limits, numpy: bool) -> sandbox.Referee:
        """Opened when it is first needed, and kept: workers take a while to start."""
        key = limits, numpy
        if key not in self._referees:
            seconds, part = limits
            self._referees[key] = self._stack.enter_context(
                sandbox.open_referee("functions", seconds, self.workers, numpy, part)
            )
        return self._referees[key]

    def _limits(self, reference: Reference) -> Limits:
        """Up to a power of two where the canonical solution is slow, so that referees are few."""
        least = self.least_seconds
        if reference.seconds <= SHORTEST:
            return least, least / INPUTS
        return float(2 ** math.ceil(math.log2(max(least, TIME_FACTOR * reference.seconds)))), 0.0


def _verdict(
    solution: Solution, reference: Reference, plus: bool, outcome: Outcome, first: int
) -> Verdict | int:
    """The verdict; or from which input on outputs are to be told, where hashes do not decide it."""
    problem, program = solution
    if outcome.reason is not Reason.OK:
        return Verdict(False, str(outcome.reason), outcome.text[:200], program, plus)
    inputs, right = reference.part(plus)
    try:
        outputs, error = outputs_and_error(outcome.text)
    except Forged as forged:
        return Verdict(False, str(Reason.TAMPERED), str(forged), program, plus)
    wrong = first_wrong(problem, inputs, outputs, right, first)
    if wrong is None:
        return Verdict(True, PASSED, "", program, True)
    if wrong >= len(outputs):
        return Verdict(False, "error", error[:200], program, plus)
    if outputs[wrong].kind == "later" and wrong > first:
        return wrong
    return Verdict(False, WRONG, f"{'plus' if plus else 'base'} input {wrong}", program, plus)
