"""A held-out task of a domain as a problem."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from azr_population.benchmark.problem import NO_ANSWER, PASSED, WRONG, EvalVerdict, Problem, Prompt
from azr_population.domains.format import Format
from azr_population.domains.known import find_domain
from azr_population.domains.task import Task
from azr_population.referee import Reason, Referee, RefereeSettings


@dataclass(frozen=True)
class DomainProblem(Problem):
    """A task, with the domain's prompt, judged by its rules as in a run."""

    id: str
    domain: str
    task: Task
    prompt_format: str = "chat"
    needs_end: bool = True

    @cached_property
    def _format(self) -> Format:
        return find_domain(self.domain).format(self.prompt_format)

    @property
    def prompt(self) -> Prompt:
        """In the domain's format of that name."""
        return Prompt(self._format.solve_prompt(self.task), raw=not self._format.chat)

    def read(self, completion: str) -> str:
        return self._format.parse_answer(self.task.type, completion) or ""

    @classmethod
    def judge(cls, answers: Sequence[tuple["DomainProblem", str]]) -> list[EvalVerdict]:
        asked = [(problem.task, (answer,)) for problem, answer in answers if answer]
        graded = iter(find_domain(answers[0][0].domain).grade(asked, _referee()))
        return [_verdict(answer, next(graded)[0].reason if answer else "") for _, answer in answers]

    @classmethod
    def known_completions(
        cls, problems: Sequence["DomainProblem"]
    ) -> list[tuple["DomainProblem", str, str]]:
        """A task's own answer is right, and that of the next task wrong."""
        right = [problem._format.write_answer(problem.task) for problem in problems]
        return list(zip(problems, right, right[1:] + right[:1], strict=True))


def _verdict(answer: str, reason: str) -> EvalVerdict:
    if not answer:
        return EvalVerdict(False, NO_ANSWER)
    if reason == Reason.SOLVED.value:
        return EvalVerdict(True, PASSED, answer=answer)
    return EvalVerdict(False, WRONG if reason == Reason.WRONG.value else reason, answer=answer)


@cache
def _referee() -> Referee:
    """Its workers end with this process."""
    return Referee(RefereeSettings())
