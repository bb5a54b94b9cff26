"""Judges prove themselves before anything is asked: a judge that is broken fails everybody alike.

Of each benchmark a few known answers go the way that completions go: right ones must pass, spoilt
ones fail. What is missing for judging (packages, a sandbox) is told on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from azr_population.errors import UserError
from azr_population.measuring.evaluation.grading.grade import Graders
from azr_population.measuring.evaluation.grading.verdict import Verdict
from azr_population.measuring.evaluation.problem import (
    ContestProblem,
    FunctionProblem,
    MathProblem,
    Problem,
)

_FEW = 4
_WRONG = "271828182.5"
_CONTEST = ContestProblem("proof", "", "", "", lambda: (("2 3\n", "5\n"), ("0 7\n", "7\n")))
"""LiveCodeBench has no solutions of its own."""


def prove(title: str, rule: str, problems: Sequence[Problem], graders: Graders) -> None:
    """Lets a benchmark's judge judge known answers to a few of these problems.

    Raises UserError where it fails a right one or passes all spoilt ones, or cannot judge here.
    """
    known = list(_known(problems[:_FEW]))
    verdicts: dict[int, Verdict] = {}
    for places, some in graders.grade(rule, [(problem, text) for problem, _, text in known]):
        verdicts.update(zip(places, some, strict=True))
    judged = [(*known[place], verdicts[place]) for place in range(len(known))]
    for problem, right, _, verdict in judged:
        if right and not verdict.passed:
            why = f"{verdict.reason} {verdict.detail}".strip()
            raise _broken(title, f"fails {problem.id}'s own right answer ({why})")
    # Not each: evalplus lets anything pass that is something, for a few problems.
    if all(verdict.passed for _, right, _, verdict in judged if not right):
        raise _broken(title, f"passes a wrong answer to {judged[0][0].id}")


def _known(problems: Sequence[Problem]) -> Iterator[tuple[Problem, bool, str]]:
    """(problem, whether it is right, completion)."""
    for problem in problems:
        if isinstance(problem, MathProblem):
            for right, text in ((True, problem.gold), (False, _WRONG)):
                yield problem, right, f"<answer>\\boxed{{{text}}}</answer>"
        elif isinstance(problem, FunctionProblem):
            spoilt = f"def {problem.entry_point}(*arguments):\n    return {_WRONG}\n"
            yield problem, True, _fenced(problem.canonical)
            yield problem, False, _fenced(spoilt)
    if isinstance(problems[0], ContestProblem):
        for right, sign in ((True, "+"), (False, "-")):
            yield _CONTEST, right, _fenced(f"a, b = map(int, input().split())\nprint(a {sign} b)")


def _fenced(program: str) -> str:
    return f"```python\n{program.strip()}\n```"


def _broken(title: str, what: str) -> UserError:
    return UserError(
        f"{title}: its judge {what}, so no figure would mean anything and nothing was asked; "
        "compare the versions installed with those of `pip install 'azr-population[eval]'`"
    )
