"""AZR's four types of code task: its three, and the exception that a program raises."""

import ast
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import ClassVar, TypeVar

from azr_population.domains import drawn
from azr_population.domains.code.domain import Code
from azr_population.domains.code.source import read_program
from azr_population.domains.code.validity import reads_a_parameter
from azr_population.domains.code_e.formats import CODE_E, FORMATS
from azr_population.domains.code_e.grammar import make
from azr_population.domains.code_e.program import naming, same_name
from azr_population.domains.domain import Rules, Verdict
from azr_population.domains.task import Proposal, Task
from azr_population.referee import Program, Reason, Referee

_MAX_NAME_CHARS = 200
_Asked = TypeVar("_Asked")
_Told = TypeVar("_Told")


class CodeE(Code):
    """The three types of `code` as they are, and `code_e`, whose output is an exception's name."""

    types: ClassVar[Mapping[str, str]] = {**Code.types, CODE_E: "find the exception"}
    formats = FORMATS

    def judge(
        self, proposals: Sequence[Proposal], referee: Referee, rules: Rules
    ) -> list[Task | str]:
        def judge_e(proposals: Sequence[Proposal]) -> list[Task | str]:
            verdicts: list[Task | str] = [self._refused(one, rules) for one in proposals]
            places = [place for place, refused in enumerate(verdicts) if not refused]
            programs = [
                Program(naming(proposals[at].program, proposals[at].imports), proposals[at].inputs)
                for at in places
            ]
            for at, execution in zip(places, referee.check(programs), strict=True):
                verdicts[at] = (
                    _task(proposals[at], execution.outputs[0])
                    if execution.valid
                    else execution.reason.value
                )
            return verdicts

        return _parted(
            proposals,
            [proposal.type == CODE_E for proposal in proposals],
            judge_e,
            lambda others: super(CodeE, self).judge(others, referee, rules),
        )

    def _refused(self, proposal: Proposal, rules: Rules) -> str:
        """A reason to refuse it unexecuted, or nothing."""
        if len(proposal.program) > rules.max_program_chars:
            return "program_too_long"
        if read_program(proposal.program).tree is None:
            return Reason.SYNTAX_ERROR.value
        refuse = self.rules if rules.reject is None else rules.reject
        if "constant" in refuse and not reads_a_parameter(proposal.program):
            return "constant"
        return ""

    def grade(
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """Names are compared as AZR compares them; nothing runs for that."""
        return _parted(
            asked,
            [task.type == CODE_E for task, _ in asked],
            lambda asked: [[_verdict(one, task) for one in answers] for task, answers in asked],
            lambda others: super(CodeE, self).grade(others, referee),
        )

    def answer(self, task: Task) -> str:
        return task.outputs[0] if task.type == CODE_E else super().answer(task)

    def draw(self, type: str, rng: Random, held_out: bool = False) -> Task:
        if type == CODE_E:
            return drawn.draw(make, rng, held_out)
        return super().draw(type, rng, held_out)

    def exam(self, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
        own = [type for type in types if type == CODE_E]
        others = super().exam(per_type, seed, [type for type in types if type != CODE_E])
        return others + drawn.exam(self, per_type, seed, own)


def _parted(
    asked: Sequence[_Asked],
    chosen: Sequence[bool],
    yes: Callable[[Sequence[_Asked]], list[_Told]],
    no: Callable[[Sequence[_Asked]], list[_Told]],
) -> list[_Told]:
    """What `yes` says of the chosen and `no` of the others, in their order."""
    ours, others = (
        iter(say([one for one, own in zip(asked, chosen, strict=True) if own is which]))
        for say, which in ((yes, True), (no, False))
    )
    return [next(ours if own else others) for own in chosen]


def exception_name(output: str) -> str:
    """The qualified name that `naming` gave out; '' where the program got at our entry."""
    name = ast.literal_eval(output)
    if not isinstance(name, str) or len(name) > _MAX_NAME_CHARS:
        return ""
    parts = name.split(".")
    return name if all(part == "<locals>" or part.isidentifier() for part in parts) else ""


def _task(proposal: Proposal, output: str) -> Task | str:
    name = exception_name(output)
    if not name:
        return Reason.TAMPERED.value
    return Task(
        CODE_E, proposal.program, proposal.inputs, (name,), proposal.message, proposal.imports
    )


def _verdict(answer: str, task: Task) -> Verdict:
    solved = same_name(answer, task.outputs[0])
    return Verdict(solved, (Reason.SOLVED if solved else Reason.WRONG).value)
