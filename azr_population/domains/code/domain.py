"""Code: AZR's types of task. The referee runs every program, rules refuse guessable ones."""

from collections.abc import Hashable, Mapping, Sequence
from typing import ClassVar

from azr_population.config.schema import TaskConfig
from azr_population.domains.code import complexity
from azr_population.domains.code.chain_tasks import draw_eval_tasks, strata
from azr_population.domains.code.formats import FORMATS, MARKS
from azr_population.domains.code.rules import REFUSALS, USUAL, reason_to_refuse, task_or_reason
from azr_population.domains.code.source import NOT_FINITE, fingerprint, is_finite
from azr_population.domains.code.task_types import TaskType, reference_answer, shown
from azr_population.domains.domain import Domain, Verdict
from azr_population.domains.task import ParsedProposal, Task
from azr_population.referee import Program, Question, Referee

_O, _I, _F = TaskType


class Code(Domain):
    """Programs with input/output pairs: find the output, the input, or the program."""

    types: ClassVar[Mapping[str, str]] = {
        str(_O): "find the output",
        str(_I): "find an input",
        str(_F): "find the program",
    }
    formats = FORMATS
    rules = tuple(REFUSALS)
    usual_rules = USUAL
    measures = complexity.MEASURES
    space = complexity.SPACE
    marks = MARKS

    def judge(
        self, proposals: Sequence[ParsedProposal], referee: Referee, rules: TaskConfig
    ) -> list[Task | str]:
        """The referee runs the programs; the domain's rules decide which of them are tasks."""
        verdicts: list[Task | str] = [reason_to_refuse(proposal, rules) for proposal in proposals]
        runnable = [(n, proposals[n]) for n, refused in enumerate(verdicts) if not refused]
        executions = referee.check(
            [
                Program(p.program, p.inputs, p.imports, literal_inputs=p.type != _O)
                for _, p in runnable
            ]
        )
        for (n, proposal), execution in zip(runnable, executions, strict=True):
            if execution.valid:
                verdicts[n] = task_or_reason(proposal, execution.outputs, rules)
            else:
                verdicts[n] = execution.reason.value
        return verdicts

    def grade(
        self, answered: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """The referee compares values by running programs. An input with an infinite number is
        refused unexecuted."""
        questions = [
            self.question(task, [a for a in answers if task.type != _I or is_finite(a)])
            for task, answers in answered
        ]
        verdicts = []
        graded = referee.grade(questions)
        for (_, answers), question, grades in zip(answered, questions, graded, strict=True):
            verdict_of = {
                answer: Verdict(grade.solved, grade.reason.value)
                for answer, grade in zip(question.answers, grades, strict=True)
            }
            verdicts.append([verdict_of.get(text, Verdict(False, NOT_FINITE)) for text in answers])
        return verdicts

    def question(self, task: Task, answers: Sequence[str]) -> Question:
        """The question to the referee about these answers; for code_f the hidden pairs decide."""
        first = shown(task) if task.type == _F else 0
        pairs = task.inputs[first:], task.outputs[first:]
        return Question(str(task.type), task.program, *pairs, tuple(answers), task.imports)

    def answer(self, task: Task) -> str:
        """See `Domain`, as the next five; layout and comments do not count."""
        return reference_answer(task)

    def shown(self, task: Task) -> tuple[str, ...]:
        if task.type == _F:
            count = shown(task)
            return (*task.inputs[:count], *task.outputs[:count])
        return (task.program, *(task.outputs if task.type == _I else task.inputs)[:1])

    def measure(self, program: str) -> dict[str, float]:
        return dict(complexity.measures(program))

    def fingerprint(self, program: str) -> Hashable:
        return fingerprint(program)

    def eval_tasks(self, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
        return draw_eval_tasks(per_type, seed, types)

    def strata(self, per_type: int) -> list[str]:
        return strata(per_type)

    def call(self, input: str, output: str) -> str:
        return f"f({input}) -> {output}"
