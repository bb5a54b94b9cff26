"""Code: AZR's types of task. The referee runs every program, rules refuse guessable ones."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ValidationError, model_validator

from azr_population.config.schema import TaskConfig
from azr_population.domains.code import complexity
from azr_population.domains.code.chain_tasks import draw_eval_tasks, strata
from azr_population.domains.code.formats import FORMATS, MARKS
from azr_population.domains.code.rules import REFUSALS, USUAL, refuse, task_or_reason
from azr_population.domains.code.source import NOT_FINITE, fingerprint, is_finite
from azr_population.domains.code.task_types import TaskType, reference_answer, shown
from azr_population.domains.domain import Domain, Verdict
from azr_population.domains.task import ParsedProposal, Task
from azr_population.errors import UserError, first_problem
from azr_population.files import read_text
from azr_population.referee import Program, Question, Referee

_O, _I, _F = TaskType


class _SeedRow(BaseModel):
    """A program with one input: a code_o and a code_i proposal; or with several: one of code_f."""

    snippet: str
    imports: tuple[str, ...] | None = ()
    input: str | None = None
    inputs: tuple[str, ...] = ()
    message: str = ""

    @model_validator(mode="after")
    def _has_an_input(self) -> "_SeedRow":
        if self.input is None and not self.inputs:
            raise ValueError("a row needs input or inputs")
        return self


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
        verdicts: list[Task | str] = [refuse(proposal, rules) for proposal in proposals]
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
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """The referee compares values by running programs. An input with an infinite number is
        refused unexecuted."""
        questions = [
            self.question(task, [a for a in answers if task.type != _I or is_finite(a)])
            for task, answers in asked
        ]
        verdicts = []
        graded = referee.grade(questions)
        for (_, answers), question, grades in zip(asked, questions, graded, strict=True):
            known = {
                answer: Verdict(grade.solved, grade.reason.value)
                for answer, grade in zip(question.answers, grades, strict=True)
            }
            verdicts.append([known.get(text, Verdict(False, NOT_FINITE)) for text in answers])
        return verdicts

    def question(self, task: Task, answers: Sequence[str]) -> Question:
        """What the referee is asked about these answers; for code_f the hidden pairs decide."""
        first = shown(task) if task.type == _F else 0
        pairs = task.inputs[first:], task.outputs[first:]
        return Question(str(task.type), task.program, *pairs, tuple(answers), task.imports)

    def answer(self, task: Task) -> str:
        """See `Domain`, as the next four; layout and comments do not count."""
        return reference_answer(task)

    def measure(self, program: str) -> dict[str, float]:
        return dict(complexity.measures(program))

    def fingerprint(self, program: str, constants: bool = True) -> Hashable:
        return fingerprint(program, constants)

    def eval_tasks(self, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
        return draw_eval_tasks(per_type, seed, types)

    def strata(self, per_type: int) -> list[str]:
        return strata(per_type)

    def read_seeds(self, path: str | Path) -> list[ParsedProposal]:
        """Proposals from a file like AZR's `data/*_seed_io.jsonl` and `*_code_f_seed_io.jsonl`, one
        per line and task type. Raises UserError: the file is missing, or a line is broken.

        The recorded outputs are not used: the referee executes every program again, because AZR's
        records hold outputs that were cut or depend on hash order.
        """
        proposals: list[ParsedProposal] = []
        for number, line in enumerate(read_text(Path(path)).split("\n"), start=1):
            if not line.strip():
                continue
            try:
                row = _SeedRow.model_validate_json(line)
            except ValidationError as error:
                raise UserError(
                    f"seed file {path}, line {number}: {first_problem(error)}; fix or remove it"
                ) from error
            inputs = row.inputs if row.input is None else (row.input,)
            message = row.message if row.input is None else ""
            types = (_F,) if row.input is None else (_O, _I)
            proposals += [
                ParsedProposal(type, row.snippet, inputs, message, row.imports or ())
                for type in types
            ]
        return proposals

    def call(self, input: str, output: str) -> str:
        return f"f({input}) -> {output}"
