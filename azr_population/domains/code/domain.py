"""Code: AZR's types of task. The referee runs every program, rules refuse guessable ones."""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import ClassVar

from pydantic import BaseModel, ValidationError, model_validator

from azr_population.config.schema import TaskConfig
from azr_population.domains.code import complexity
from azr_population.domains.code.formats import FORMATS, MARKS
from azr_population.domains.code.generator.eval_tasks import draw_eval_tasks, strata
from azr_population.domains.code.rules import REFUSALS, reads_a_parameter, task_or_reason
from azr_population.domains.code.source import NOT_FINITE, fingerprint, is_finite, read_program
from azr_population.domains.code.task_types import CODE_E, TaskType, reference_answer, shown
from azr_population.domains.code_e.grammar import make
from azr_population.domains.code_e.named_error import exception_name, naming, same_name
from azr_population.domains.domain import Domain, Verdict, draw_task
from azr_population.domains.task import ParsedProposal, Task
from azr_population.errors import UserError, first_problem
from azr_population.files import read_text
from azr_population.referee import Execution, Program, Question, Reason, Referee

_O, _I, _F = TaskType
MIN_CODE_F_INPUTS = 4
"""Different inputs that a code_f task needs: two to show and two to hide."""


class ProgramDomain(Domain):
    """A domain whose proposals are programs that the referee runs."""

    measures = complexity.MEASURES
    space = complexity.SPACE

    @abstractmethod
    def refuse(self, proposal: ParsedProposal, rules: TaskConfig) -> str:
        """A reason to refuse a proposal unexecuted; '' for none."""

    @abstractmethod
    def program(self, proposal: ParsedProposal) -> Program:
        """What is run to see whether a proposal is a task."""

    @abstractmethod
    def accept(
        self, proposal: ParsedProposal, execution: Execution, rules: TaskConfig
    ) -> Task | str:
        """The task, or the reason for refusing it, after a valid execution."""

    @abstractmethod
    def question(self, task: Task, answers: Sequence[str]) -> Question:
        """What the referee is asked about these answers."""

    def rejected(self, rules: TaskConfig) -> Sequence[str]:
        """The rules of the domain that refuse a task."""
        return self.rules if rules.reject is None else rules.reject

    def judge(
        self, proposals: Sequence[ParsedProposal], referee: Referee, rules: TaskConfig
    ) -> list[Task | str]:
        """The referee runs the programs; the domain's rules decide which of them are tasks."""
        verdicts: list[Task | str] = [
            "program_too_long"
            if len(proposal.program) > rules.max_program_chars
            else self.refuse(proposal, rules)
            for proposal in proposals
        ]
        runnable = [(n, proposals[n]) for n, refused in enumerate(verdicts) if not refused]
        executions = referee.check([self.program(proposal) for _, proposal in runnable])
        for (n, proposal), execution in zip(runnable, executions, strict=True):
            if execution.valid:
                verdicts[n] = self.accept(proposal, execution, rules)
            else:
                verdicts[n] = execution.reason.value
        return verdicts

    def grade(
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """The referee compares values by running programs. An input with an infinite number is
        refused unexecuted."""
        finite = [
            [answer for answer in answers if task.type in (_O, _F) or is_finite(answer)]
            for task, answers in asked
        ]
        questions = [
            self.question(task, some) for (task, _), some in zip(asked, finite, strict=True)
        ]
        verdicts = []
        for (_, answers), some, grades in zip(asked, finite, referee.grade(questions), strict=True):
            graded = {
                answer: Verdict(grade.solved, grade.reason.value)
                for answer, grade in zip(some, grades, strict=True)
            }
            verdicts.append([graded.get(text, Verdict(False, NOT_FINITE)) for text in answers])
        return verdicts

    def answer(self, task: Task) -> str:
        """See `Domain`, as the next two; layout and comments do not count."""
        return reference_answer(task)

    def measure(self, program: str) -> dict[str, float]:
        return dict(complexity.measures(program))

    def fingerprint(self, program: str, constants: bool = True) -> Hashable:
        return fingerprint(program, constants)


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


class Code(ProgramDomain):
    """Programs with input/output pairs: find the output, the input, or the program; in `CodeE`
    the exception, too."""

    types: ClassVar[Mapping[str, str]] = {
        str(_O): "find the output",
        str(_I): "find an input",
        str(_F): "find the program",
    }
    formats = FORMATS
    rules = tuple(REFUSALS)
    marks = MARKS

    def refuse(self, proposal: ParsedProposal, rules: TaskConfig) -> str:
        """See `ProgramDomain`, as the next three."""
        if proposal.type == _F and len(set(proposal.inputs)) < MIN_CODE_F_INPUTS:
            return "too_few_inputs"
        if proposal.type == _I and not all(map(is_finite, proposal.inputs)):
            return NOT_FINITE
        if proposal.type == CODE_E:
            if read_program(proposal.program) is None:
                return Reason.SYNTAX_ERROR.value
            if "constant" in self.rejected(rules) and not reads_a_parameter(proposal.program):
                return "constant"
        return ""

    def program(self, proposal: ParsedProposal) -> Program:
        if proposal.type == CODE_E:
            return Program(naming(proposal.program, proposal.imports), proposal.inputs)
        literals = proposal.type != _O
        return Program(proposal.program, proposal.inputs, proposal.imports, literal_inputs=literals)

    def accept(
        self, proposal: ParsedProposal, execution: Execution, rules: TaskConfig
    ) -> Task | str:
        outputs = execution.outputs
        if proposal.type == CODE_E:
            name = exception_name(outputs[0])
            return Task(**vars(proposal), outputs=(name,)) if name else Reason.TAMPERED.value
        return task_or_reason(proposal, outputs, rules)

    def question(self, task: Task, answers: Sequence[str]) -> Question:
        """For code_f only the hidden pairs decide."""
        first = shown(task) if task.type == _F else 0
        pairs = task.inputs[first:], task.outputs[first:]
        return Question(str(task.type), task.program, *pairs, tuple(answers), task.imports)

    def grade(
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """Names of exceptions are compared as AZR compares them; nothing runs for that."""
        run = [question for question in asked if question[0].type != CODE_E]
        graded = iter(super().grade(run, referee))
        return [
            [_compared(answer, task) for answer in answers] if task.type == CODE_E else next(graded)
            for task, answers in asked
        ]

    def draw(self, type: str, rng: Random, held_out: bool = False) -> Task:
        """See `Domain`, as the others."""
        if type == CODE_E:
            return draw_task(make, rng, held_out)
        return super().draw(type, rng, held_out)

    def eval_tasks(self, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
        added = [type for type in types if type not in Code.types]
        return draw_eval_tasks(per_type, seed, types) + super().eval_tasks(per_type, seed, added)

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


class CodeE(Code):
    """`code` and AZR's fourth type, whose output is the name of an exception."""

    types: ClassVar[Mapping[str, str]] = {**Code.types, CODE_E: "find the exception"}


def _compared(answer: str, task: Task) -> Verdict:
    solved = same_name(answer, task.outputs[0])
    return Verdict(solved, (Reason.SOLVED if solved else Reason.WRONG).value)
