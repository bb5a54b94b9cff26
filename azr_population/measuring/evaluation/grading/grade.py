"""From completions to verdicts, each benchmark by its own grader."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from pathlib import Path

from azr_population.measuring.evaluation.grading.contests import ContestJudge
from azr_population.measuring.evaluation.grading.extraction import extract
from azr_population.measuring.evaluation.grading.functions import FunctionJudge
from azr_population.measuring.evaluation.grading.mathematics import grade_answers
from azr_population.measuring.evaluation.grading.puzzles import judge_puzzles
from azr_population.measuring.evaluation.grading.references import References
from azr_population.measuring.evaluation.grading.verdict import Verdict
from azr_population.measuring.evaluation.grading.workers import Workers
from azr_population.measuring.evaluation.problem import (
    ContestProblem,
    FunctionProblem,
    MathProblem,
    Problem,
    PuzzleProblem,
)

Answer = tuple[Problem, str]
_CHUNK = 512


class Graders(AbstractContextManager["Graders"]):
    """Opens what the graders need when it is first needed. Use it as a context manager."""

    def __init__(self, processes: int = 0, references: Path | None = None) -> None:
        """`processes`: 0 takes one per core. `references`: folder of what is right, see there."""
        self.processes = processes
        self._folder = references
        self._stack = ExitStack()

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def grade(
        self, rule: str, completions: Sequence[Answer]
    ) -> Iterator[tuple[list[int], list[Verdict]]]:
        """Verdicts on completions of one benchmark, some at a time: their places, and they.

        `rule` says how the answer is found (`extraction.RULES`). Equal answers to a problem are
        judged once.
        """
        for start in range(0, len(completions), _CHUNK):
            chunk = completions[start : start + _CHUNK]
            answers = list(self.answers(rule, chunk))
            once = {(problem.id, answer): (problem, answer) for problem, answer in answers}
            judged = dict(zip(once, self.judge(list(once.values())), strict=True))
            places = list(range(start, start + len(chunk)))
            yield places, [judged[problem.id, answer] for problem, answer in answers]

    def answers(self, rule: str, completions: Iterable[Answer]) -> Iterator[Answer]:
        """Each problem with the answer that a completion gives; '' where there is none."""
        kept = list(completions)
        asked = [(rule, problem, text) for problem, text in kept]
        found: Iterable[str]
        if rule == "evalplus":  # it parses what the model wrote, again and again
            found = self.workers.map(extract, asked, lambda: "")
        else:
            found = (extract(*one) for one in asked)
        for (problem, _), answer in zip(kept, found, strict=True):
            yield problem, answer

    def judge(self, answers: Sequence[Answer]) -> list[Verdict]:
        """Verdicts on answers to problems of one kind, in order."""
        if not answers:
            return []
        kind = type(answers[0][0])
        if kind is MathProblem:
            return list(grade_answers(answers, self.workers))  # type: ignore[arg-type]
        if kind is FunctionProblem:
            return self.functions.judge(answers)  # type: ignore[arg-type]
        if kind is PuzzleProblem:
            return judge_puzzles(answers, self.processes)  # type: ignore[arg-type]
        assert kind is ContestProblem
        return self.contests.judge(answers)  # type: ignore[arg-type]

    @cached_property
    def workers(self) -> Workers:
        """Processes for what is parsed."""
        return self._stack.enter_context(Workers(self.processes))

    @cached_property
    def functions(self) -> FunctionJudge:
        """The judge of HumanEval's and MBPP's kind."""
        references = References(self._folder, self.processes)
        return self._stack.enter_context(FunctionJudge(references, self.processes))

    @cached_property
    def contests(self) -> ContestJudge:
        """The judge of LiveCodeBench's kind."""
        return ContestJudge(self.processes)
