"""Judges prove themselves before anything is asked: a judge that is broken fails everybody alike.

Of each benchmark a few known answers go the way that completions go: right ones must pass, spoilt
ones fail. What is missing for judging (packages, a sandbox) is told on the way.
"""

from collections.abc import Iterator, Sequence

from azr_population.errors import UserError
from azr_population.measuring.evaluation.grading.grade import Graders
from azr_population.measuring.evaluation.problem import (
    ContestProblem,
    FunctionProblem,
    MathProblem,
    Problem,
    PuzzleProblem,
)

_FEW = 4
_WRONG = "271828182.5"
_CONTEST = ContestProblem("proof", "", "", "", lambda: (("2 3\n", "5\n"), ("0 7\n", "7\n")))
"""LiveCodeBench has no solutions of its own."""
_PUZZLE = PuzzleProblem("proof", "def sat(x):\n    return x > 0 and x * x == 1369")
"""P3's solutions are programs, which have to be run first."""


def prove(title: str, rule: str, problems: Sequence[Problem], graders: Graders) -> None:
    """Lets a benchmark's judge judge known answers to a few of these problems. Raises UserError
    where it fails a right one or passes all spoilt ones, or cannot judge here."""
    known = list(_known(problems[:_FEW]))
    read = graders.answers(rule, [(problem, text) for problem, _, _, text in known])
    if not all(answer for _, answer in read):
        raise _broken(title, "reads no answer in a completion that has one")
    # As they are: evalplus's rule leaves out generators, as one canonical solution has.
    verdicts = graders.judge([(problem, answer) for problem, _, answer, _ in known])
    judged = [(*about[:2], verdict) for about, verdict in zip(known, verdicts, strict=True)]
    for problem, right, verdict in judged:
        if right and not verdict.passed:
            why = f"{verdict.reason} {verdict.detail}".strip()
            raise _broken(title, f"fails {problem.id}'s own right answer ({why})")
    # Not each: evalplus lets anything pass that is something, for a few problems.
    if all(verdict.passed for _, right, verdict in judged if not right):
        raise _broken(title, f"passes a wrong answer to {judged[0][0].id}")


def _known(problems: Sequence[Problem]) -> Iterator[tuple[Problem, bool, str, str]]:
    """(problem, whether the answer is right, answer, completion)."""
    for problem in problems:
        if isinstance(problem, MathProblem):
            for right, text in ((True, problem.gold), (False, _WRONG)):
                yield problem, right, text, f"<answer>\\boxed{{{text}}}</answer>"
        elif isinstance(problem, FunctionProblem):
            spoilt = f"def {problem.entry_point}(*arguments):\n    return {_WRONG}\n"
            yield problem, True, problem.canonical, _fenced(problem.canonical)
            yield problem, False, spoilt, _fenced(spoilt)
    if isinstance(problems[0], PuzzleProblem):
        for right, text in ((True, "37"), (False, "36")):
            yield _PUZZLE, right, text, f"```answer\n{text}\n```"
    if isinstance(problems[0], ContestProblem):
        for right, sign in ((True, "+"), (False, "-")):
            program = f"a, b = map(int, input().split())\nprint(a {sign} b)"
            yield _CONTEST, right, program, _fenced(program)


def _fenced(program: str) -> str:
    return f"```python\n{program.strip()}\n```"


def _broken(title: str, what: str) -> UserError:
    return UserError(
        f"{title}: its judge {what}, so no figure would mean anything and nothing was asked; "
        "compare the versions installed with those of `pip install 'azr-population[eval]'`"
    )
