"""Whether two mathematical answers are equal, by math-verify as AZR calls it."""

import logging
from collections.abc import Sequence

from azr_population.errors import UserError
from azr_population.evals.benchmarks import MathProblem
from azr_population.evals.grading.verdict import NO_ANSWER, PASSED, WRONG, Verdict
from azr_population.evals.grading.workers import Workers

_LONGEST = 4000
"""Characters of an answer; what is longer is no answer to these questions."""


def grade_answers(answers: Sequence[tuple[MathProblem, str]], workers: Workers) -> list[Verdict]:
    """Verdicts in order. Raises UserError where math-verify is missing."""
    try:
        import math_verify  # noqa: F401
    except ImportError as error:
        raise UserError("math-verify is needed: pip install 'math-verify[antlr4_9_3]'") from error
    pairs = [(problem.gold, answer) for problem, answer in answers]
    return [
        _verdict(answer, equal)
        for (_, answer), equal in zip(answers, workers.map(equal_answers, pairs), strict=True)
    ]


def _verdict(answer: str, equal: bool | None) -> Verdict:
    if not answer.strip():
        return Verdict(False, NO_ANSWER)
    if equal is None:
        return Verdict(False, "timeout", "the answer took too long to read", answer)
    return Verdict(equal, PASSED if equal else WRONG, "", answer)


def equal_answers(gold: str, answer: str) -> bool:
    """What AZR's grader says (`new_math_equal_process` in its evaluation/math_eval): math-verify on
    the two as they are. It may run for hours on a hostile answer: call it through `Workers`."""
    if not answer.strip() or len(answer) > _LONGEST:
        return False
    from math_verify import parse, verify

    # It warns that it has no time limit; `Workers` has one.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    one, other = (parse("\\boxed{" + text + "}", parsing_timeout=None) for text in (gold, answer))
    return bool(verify(one, other, timeout_seconds=None))
