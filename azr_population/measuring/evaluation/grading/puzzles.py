"""Judges answers to puzzles as the domain `puzzles` does, in the referee."""

from collections.abc import Sequence

from azr_population.domains.puzzles.domain import Puzzles
from azr_population.domains.puzzles.grammar import puzzle_task
from azr_population.measuring.evaluation.grading.verdict import NO_ANSWER, PASSED, WRONG, Verdict
from azr_population.measuring.evaluation.problem import PuzzleProblem
from azr_population.referee import Reason, Referee, RefereeSettings


def judge_puzzles(answers: Sequence[tuple[PuzzleProblem, str]], workers: int = 0) -> list[Verdict]:
    """Verdicts in order; `workers`: 0 takes one per core."""
    given = [(problem, answer) for problem, answer in answers if answer]
    asked = [(puzzle_task(problem.program), (answer,)) for problem, answer in given]
    with Referee(RefereeSettings(workers=workers)) as referee:
        told = iter(Puzzles().grade(asked, referee))
    return [_verdict(answer, next(told)[0].reason if answer else "") for _, answer in answers]


def _verdict(answer: str, reason: str) -> Verdict:
    if not answer:
        return Verdict(False, NO_ANSWER)
    if reason == Reason.SOLVED.value:
        return Verdict(True, PASSED, answer=answer)
    return Verdict(False, WRONG if reason == Reason.WRONG.value else reason, answer=answer)
