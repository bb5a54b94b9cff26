"""AZR's four types of code task: its three, and the exception that a program raises."""

import ast
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.domain import Code, reads_a_parameter
from azr_population.domains.code.source import read_program
from azr_population.domains.code.task_types import CODE_E
from azr_population.domains.code_e.grammar import make
from azr_population.domains.code_e.named_error import naming, same_name
from azr_population.domains.domain import Verdict, draw_task
from azr_population.domains.task import ParsedProposal, Task
from azr_population.referee import Execution, Program, Reason, Referee

_MAX_NAME_CHARS = 200


class CodeE(Code):
    """The three types of `code` as they are, and `code_e`, whose output is an exception's name."""

    types: ClassVar[Mapping[str, str]] = {**Code.types, CODE_E: "find the exception"}

    def refuse(self, proposal: ParsedProposal, rules: TaskConfig) -> str:
        if proposal.type != CODE_E:
            return super().refuse(proposal, rules)
        if read_program(proposal.program) is None:
            return Reason.SYNTAX_ERROR.value
        constant = not reads_a_parameter(proposal.program)
        return "constant" if constant and "constant" in self.rejected(rules) else ""

    def program(self, proposal: ParsedProposal) -> Program:
        if proposal.type != CODE_E:
            return super().program(proposal)
        return Program(naming(proposal.program, proposal.imports), proposal.inputs)

    def accept(
        self, proposal: ParsedProposal, execution: Execution, rules: TaskConfig
    ) -> Task | str:
        if proposal.type != CODE_E:
            return super().accept(proposal, execution, rules)
        name = exception_name(execution.outputs[0])
        return Task(**vars(proposal), outputs=(name,)) if name else Reason.TAMPERED.value

    def grade(
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """Names are compared as AZR compares them; nothing runs for that."""
        graded = iter(
            super().grade([question for question in asked if question[0].type != CODE_E], referee)
        )
        return [
            [_verdict(answer, task) for answer in answers] if task.type == CODE_E else next(graded)
            for task, answers in asked
        ]

    def draw(self, type: str, rng: Random, held_out: bool = False) -> Task:
        if type == CODE_E:
            return draw_task(make, rng, held_out)
        return super().draw(type, rng, held_out)


def exception_name(output: str) -> str:
    """The qualified name that `naming` gave out; '' where the program got at our entry."""
    name = ast.literal_eval(output)
    if not isinstance(name, str) or len(name) > _MAX_NAME_CHARS:
        return ""
    parts = name.split(".")
    return name if all(part == "<locals>" or part.isidentifier() for part in parts) else ""


def _verdict(answer: str, task: Task) -> Verdict:
    solved = same_name(answer, task.outputs[0])
    return Verdict(solved, (Reason.SOLVED if solved else Reason.WRONG).value)
