"""Judges solutions of HumanEval and MBPP problems by evalplus's rules, in the referee's sandbox."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from azr_population.evaluation.grading import sandbox
from azr_population.evaluation.grading.evalplus_rules import first_wrong
from azr_population.evaluation.grading.outputs import Forged, outputs_of, unpack
from azr_population.evaluation.grading.references import (
    SHORTEST,
    Reference,
    References,
    call_task,
)
from azr_population.evaluation.grading.verdict import NO_ANSWER, PASSED, WRONG, Verdict
from azr_population.evaluation.problem import FunctionProblem
from azr_population.referee import Reason
from azr_population.referee.jobs import Outcome

Solution = tuple[FunctionProblem, str]
LEAST_SECONDS = 4.0
TIME_FACTOR = 4.0
"""Processor time that a solution has for the plus inputs (half of it for the base inputs): the
least; or the factor on what was enough for the canonical one, where `SHORTEST` was not. evalplus
gives each input 1 second by the wall, or 4 times what the canonical one took, and 60 to all."""
_BATCH = 256
_LONGEST = 200_000


class FunctionJudge:
    """Judges solutions; knows what is right from the canonical ones."""

    def __init__(
        self, references: References, workers: int = 0, least_seconds: float = LEAST_SECONDS
    ) -> None:
        self.references = references
        self.workers = workers
        self.least_seconds = least_seconds

    def judge(
        self,
        solutions: Sequence[Solution],
        done: Callable[[int], None] = lambda count: None,
    ) -> list[Verdict]:
        """Verdicts in order; `done` is told how many more there are now.

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
        done(len(verdicts))
        for plus in (False, True):
            waiting = [number for number in range(len(solutions)) if number not in verdicts]
            for batch in self._stage(plus, waiting, solutions, references):
                final = {
                    number: verdict
                    for number, verdict in batch.items()
                    if plus or not verdict.passed or not solutions[number][0].plus_inputs
                }
                verdicts.update(final)
                done(len(final))
        return [verdicts[number] for number in range(len(solutions))]

    def _stage(
        self,
        plus: bool,
        waiting: Sequence[int],
        solutions: Sequence[Solution],
        references: dict[str, Reference],
    ) -> Iterator[dict[int, Verdict]]:
        """Verdicts on base or plus inputs, some at a time."""
        groups: dict[tuple[float, bool], list[int]] = defaultdict(list)
        for number in waiting:
            problem, solution = solutions[number]
            groups[self._limit(references[problem.id], plus), "numpy" in solution].append(number)
        for (seconds, numpy), numbers in sorted(groups.items()):
            with sandbox.open_referee(seconds, self.workers, numpy) as referee:
                for start in range(0, len(numbers), _BATCH):
                    batch = numbers[start : start + _BATCH]
                    works = [
                        call_task(*solutions[n], [references[solutions[n][0].id].part(plus)[0]])
                        for n in batch
                    ]
                    yield {
                        n: _verdict(solutions[n], references[solutions[n][0].id], plus, outcome)
                        for n, (outcome,) in zip(batch, sandbox.run(referee, works), strict=True)
                    }

    def _limit(self, reference: Reference, plus: bool) -> float:
        """Seconds for a solution, up to a power of two so that few referees are needed."""
        needed = self.least_seconds if plus else self.least_seconds / 2
        if reference.seconds > SHORTEST:
            needed = max(needed, TIME_FACTOR * reference.seconds)
        return float(2 ** math.ceil(math.log2(needed)))


def _verdict(solution: Solution, reference: Reference, plus: bool, outcome: Outcome) -> Verdict:
    problem, program = solution
    if outcome.reason is not Reason.OK:
        return Verdict(False, str(outcome.reason), outcome.text[:200], program, plus)
    inputs, right = reference.part(plus)
    try:
        (record,) = unpack(outcome.text)
        outputs = outputs_of(record["lines"])
        error = str(record["error"])[:200]
    except (Forged, KeyError, TypeError, ValueError) as forged:
        return Verdict(False, str(Reason.TAMPERED), str(forged), program, plus)
    wrong = first_wrong(problem, inputs, outputs, right)
    if wrong is None:
        return Verdict(True, PASSED, "", program, True)
    if wrong >= len(outputs):
        return Verdict(False, "error", error, program, plus)
    return Verdict(False, WRONG, f"{'plus' if plus else 'base'} input {wrong}", program, plus)
