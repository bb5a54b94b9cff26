"""Code: AZR's three types of task. The referee runs every program, rules refuse guessable ones."""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from azr_population.config.schema import TaskConfig
from azr_population.domains.code import complexity
from azr_population.domains.code.formats import FORMATS, MARKS
from azr_population.domains.code.seed_file import read_seed_file
from azr_population.domains.code.source import NOT_FINITE, fingerprint, is_finite
from azr_population.domains.code.task_types import CODE_E, TaskType, reference_answer, shown
from azr_population.domains.code.validity import REFUSALS, accept, refuse_before
from azr_population.domains.domain import Domain, Verdict
from azr_population.domains.task import ParsedProposal, Task
from azr_population.referee import Execution, Program, Question, Referee


class ProgramDomain(Domain):
    """A domain whose proposals are programs that the referee runs."""

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
        verdicts: list[Task | str] = [self.refuse(proposal, rules) for proposal in proposals]
        runnable = [(n, proposals[n]) for n, refused in enumerate(verdicts) if not refused]
        executions = referee.check([self.program(proposal) for _, proposal in runnable])
        for (n, proposal), execution in zip(runnable, executions, strict=True):
            verdicts[n] = (
                self.accept(proposal, execution, rules)
                if execution.valid
                else execution.reason.value
            )
        return verdicts

    def grade(
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """The referee compares values by running programs. An input with an infinite number is
        refused unexecuted."""
        literal = TaskType.CODE_O, TaskType.CODE_F, CODE_E
        finite = [
            tuple(a for a in answers if task.type in literal or is_finite(a))
            for task, answers in asked
        ]
        graded = referee.grade(
            [self.question(task, some) for (task, _), some in zip(asked, finite, strict=True)]
        )
        refused = Verdict(False, NOT_FINITE)
        verdicts = []
        for (_, answers), some, grades in zip(asked, finite, graded, strict=True):
            by_answer = {
                answer: Verdict(grade.solved, grade.reason.value)
                for answer, grade in zip(some, grades, strict=True)
            }
            verdicts.append([by_answer.get(answer, refused) for answer in answers])
        return verdicts

    def fingerprint(self, program: str, constants: bool = True) -> Hashable:
        """See `Domain`; layout and comments do not count."""
        return fingerprint(program, constants)


class Code(ProgramDomain):
    """Programs with input/output pairs: find the output, the input, or the program."""

    types: ClassVar[Mapping[str, str]] = {
        str(TaskType.CODE_O): "find the output",
        str(TaskType.CODE_I): "find an input",
        str(TaskType.CODE_F): "find the program",
    }
    formats = FORMATS
    rules = tuple(REFUSALS)
    measures = complexity.MEASURES
    space = complexity.SPACE
    marks = MARKS

    def refuse(self, proposal: ParsedProposal, rules: TaskConfig) -> str:
        """See `ProgramDomain`, as the next three."""
        return refuse_before(proposal, rules.max_program_chars)

    def program(self, proposal: ParsedProposal) -> Program:
        literal = proposal.type != TaskType.CODE_O
        return Program(proposal.program, proposal.inputs, proposal.imports, literal_inputs=literal)

    def accept(
        self, proposal: ParsedProposal, execution: Execution, rules: TaskConfig
    ) -> Task | str:
        return accept(proposal, execution.outputs, self.rejected(rules), rules.max_output_chars)

    def question(self, task: Task, answers: Sequence[str]) -> Question:
        """For code_f only the hidden pairs decide."""
        first = shown(task) if task.type == TaskType.CODE_F else 0
        pairs = task.inputs[first:], task.outputs[first:]
        return Question(str(task.type), task.program, *pairs, tuple(answers), task.imports)

    def answer(self, task: Task) -> str:
        """See `Domain`, as the others."""
        return reference_answer(task)

    def measure(self, program: str) -> dict[str, float]:
        return dict(complexity.measures(program))

    def eval_tasks(self, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
        # Late: its programs are of the nano corpus's grammar, whose documents are such tasks.
        from azr_population.bases.nano.eval_tasks import draw_eval_tasks

        return draw_eval_tasks(per_type, seed, types)

    def strata(self, per_type: int) -> list[str]:
        from azr_population.bases.nano.eval_tasks import strata

        return strata(per_type)

    def read_seeds(self, path: str | Path) -> list[ParsedProposal]:
        return read_seed_file(path)

    def call(self, input: str, output: str) -> str:
        return f"f({input}) -> {output}"
