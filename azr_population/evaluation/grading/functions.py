"""Judges solutions of HumanEval and MBPP problems by evalplus's rules, in the referee's sandbox."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from azr_population.evaluation.grading import sandbox
from azr_population.evaluation.grading.evalplus_rules import first_wrong
from azr_population.evaluation.grading.outputs import Forged, outputs_of, unpack
from azr_population.evaluation.grading.references import Reference, References, call_task
from azr_population.evaluation.grading.verdict import NO_ANSWER, PASSED, WRONG, Verdict
from azr_population.evaluation.problem import FunctionProblem
from azr_population.referee import Reason
from azr_population.referee.jobs import Outcome

LEAST_SECONDS = 4.0
TIME_FACTOR = 4.0
"""Processor time that a solution has for all its inputs: what the canonical one took times the
factor, but at least so much. evalplus gives each input 1 second of the wall clock and 4 times what
the canonical solution took, and 60 seconds to all."""
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
        solutions: Sequence[tuple[FunctionProblem, str]],
        done: Callable[[int], None] = lambda count: None,
    ) -> list[Verdict]:
        """Verdicts in order; `done` is told how many more there are now."""
        verdicts: dict[int, Verdict] = {}
        groups: dict[tuple[float, bool], list[int]] = defaultdict(list)
        references = self.references.of([problem for problem, _ in solutions])
        for number, (problem, solution) in enumerate(solutions):
            if not solution.strip():
                verdicts[number] = Verdict(False, NO_ANSWER, base_passed=False)
            elif len(solution) > _LONGEST:
                verdicts[number] = Verdict(False, "too long", base_passed=False)
            else:
                key = self._limit(references[problem.id].seconds), "numpy" in solution
                groups[key].append(number)
        done(len(verdicts))
        for (seconds, numpy), numbers in sorted(groups.items()):
            with sandbox.open_referee(seconds, self.workers, numpy) as referee:
                for start in range(0, len(numbers), _BATCH):
                    batch = numbers[start : start + _BATCH]
                    tasks = [solutions[number] for number in batch]
                    found = _judged(referee, tasks, references)
                    verdicts.update(zip(batch, found, strict=True))
                    done(len(batch))
        return [verdicts[number] for number in range(len(solutions))]

    def _limit(self, reference_seconds: float) -> float:
        """Seconds for a solution, up to a power of two so that few referees are needed."""
        needed = max(self.least_seconds, TIME_FACTOR * reference_seconds)
        return float(2 ** math.ceil(math.log2(needed)))


def _judged(
    referee: sandbox.Referee,
    tasks: Sequence[tuple[FunctionProblem, str]],
    references: dict[str, Reference],
) -> Iterator[Verdict]:
    sets = [(references[p.id].base_inputs, references[p.id].plus_inputs) for p, _ in tasks]
    works = [
        call_task(problem, solution, inputs)
        for (problem, solution), inputs in zip(tasks, sets, strict=True)
    ]
    outcomes = [outcome for (outcome,) in sandbox.run(referee, works)]
    # What did not come to an end has told nothing of its base tests: those are run by themselves.
    again = [
        number
        for number, outcome in enumerate(outcomes)
        if outcome.reason is not Reason.OK and sets[number][1]
    ]
    base_works = [call_task(*tasks[number], sets[number][:1]) for number in again]
    base = dict(zip(again, sandbox.run(referee, base_works), strict=True))
    for number, outcome in enumerate(outcomes):
        problem, solution = tasks[number]
        reference = references[problem.id]
        verdict = _verdict(problem, solution, reference, outcome)
        if number in base:
            alone = _verdict(problem, solution, _base_only(reference), base[number][0])
            verdict = Verdict(
                False, verdict.reason, verdict.detail, solution, base_passed=alone.passed
            )
        yield verdict


def _verdict(
    problem: FunctionProblem, solution: str, reference: Reference, outcome: Outcome
) -> Verdict:
    if outcome.reason is not Reason.OK:
        return Verdict(False, str(outcome.reason), outcome.text[:200], solution, False)
    expected = (
        (reference.base_inputs, reference.base),
        (reference.plus_inputs, reference.plus),
    )
    passed: list[bool] = []
    reason, detail = PASSED, ""
    try:
        records = unpack(outcome.text)
        for (inputs, right), record in zip(expected, records, strict=False):
            outputs = outputs_of(record["lines"])
            wrong = first_wrong(problem, inputs, outputs, right)
            passed.append(wrong is None)
            if wrong is not None and reason == PASSED:
                raised = wrong >= len(outputs)
                reason = "error" if raised else WRONG
                detail = str(record["error"])[:200] if raised else f"input {wrong}"
    except (Forged, KeyError, TypeError) as error:
        return Verdict(False, str(Reason.TAMPERED), str(error), solution, False)
    if len(passed) < 1 + bool(reference.plus_inputs):
        return Verdict(False, str(Reason.TAMPERED), "records are missing", solution, False)
    return Verdict(all(passed), reason, detail, solution, passed[0])


def _base_only(reference: Reference) -> Reference:
    return Reference(reference.base_inputs, [], reference.base, [], reference.seconds)
