"""Code: AZR's three types of task. The referee runs every program, rules refuse guessable ones."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from azr_population.domains.code import complexity
from azr_population.domains.code.formats import FORMATS
from azr_population.domains.code.held_out import HeldOutPrograms
from azr_population.domains.code.nano_format import MARKS
from azr_population.domains.code.questions import question, verdicts
from azr_population.domains.code.seed_file import read_seed_file
from azr_population.domains.code.space import SPACE
from azr_population.domains.code.task import TaskType, reference_answer
from azr_population.domains.code.validity import REFUSALS, accept, refuse_before
from azr_population.domains.domain import Domain, HeldOut, Rules, Verdict
from azr_population.domains.task import Proposal, Task
from azr_population.referee import Program, Referee


class Code(Domain):
    """Programs with input/output pairs: find the output, the input, or the program."""

    types: ClassVar[Mapping[str, str]] = {
        str(TaskType.CODE_O): "find the output",
        str(TaskType.CODE_I): "find an input",
        str(TaskType.CODE_F): "find the program",
    }
    formats = FORMATS
    rules = tuple(REFUSALS)
    measures = complexity.MEASURES
    space = SPACE
    marks = MARKS

    def judge(
        self, proposals: Sequence[Proposal], referee: Referee, rules: Rules
    ) -> list[Task | str]:
        """The referee runs the programs; the validity rules decide which of them are tasks."""
        verdicts: list[Task | str] = [
            refuse_before(proposal, rules.max_program_chars) or "" for proposal in proposals
        ]
        runnable = [index for index, refused in enumerate(verdicts) if not refused]
        programs = [
            Program(
                proposals[i].program,
                proposals[i].inputs,
                proposals[i].imports,
                literal_inputs=proposals[i].type != TaskType.CODE_O,
            )
            for i in runnable
        ]
        refuse = self.rules if rules.reject is None else rules.reject
        for index, execution in zip(runnable, referee.check(programs), strict=True):
            verdicts[index] = (
                accept(proposals[index], execution.outputs, refuse, rules.max_output_chars)
                if execution.valid
                else execution.reason.value
            )
        return verdicts

    def grade(
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """The referee compares values by running programs; of code_f the hidden pairs decide."""
        return verdicts(referee, asked, question)

    def answer(self, task: Task) -> str:
        """See `Domain`, as the others."""
        return reference_answer(task)

    def measure(self, program: str) -> dict[str, float]:
        return dict(complexity.measures(program))

    def held_out(self, programs: Iterable[str]) -> HeldOut:
        return HeldOutPrograms(programs)

    def exam(self, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
        # Late: its programs are of the nano corpus's grammar, whose documents are such tasks.
        from azr_population.bases.nano.exam import exam

        return exam(per_type, seed, types)

    def strata(self, per_type: int) -> list[str]:
        from azr_population.bases.nano.exam import strata

        return strata(per_type)

    def read_seeds(self, path: str | Path) -> list[Proposal]:
        return read_seed_file(path)

    def call(self, given: str, output: str) -> str:
        return f"f({given}) -> {output}"
