"""A domain of one's own: the teacher writes a sum, Python knows what it is, the student finds out.

    cd examples
    azr-population train task.domain=arithmetic.Arithmetic base.prompt_format=sums \
        run.dir=../runs/sums

It plays on the base that ships, which has never seen a bare sum: its prompts begin a program that
the base completes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from azr_population.config.schema import TaskConfig
from azr_population.domains.domain import Domain, Verdict
from azr_population.domains.format import Format
from azr_population.domains.metric import Metric
from azr_population.domains.task import ParsedProposal, Task
from azr_population.referee import Referee
from azr_population.registry import Registry

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


class Sums(Format):
    """`return n` is the prompt; ` + 3<in>7` makes it 7 + 3."""

    chat: ClassVar[bool] = False
    PROPOSE: ClassVar[Mapping[str, str]] = {"calculate": "<PO>def f(n):\n    return n"}
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]] = {"calculate": (16, 16)}

    def parse_proposal(self, type: str, text: str) -> ParsedProposal | None:
        match = re.fullmatch(r" ([-+*]) (\d+)<in>(-?\d+)", text)
        return ParsedProposal(type, f"{match[3]} {match[1]} {match[2]}", ("",)) if match else None

    def solve_prompt(self, task: Task) -> str:
        first, sign, other = task.program.split()
        return f"<SO>def f(n):\n    return n {sign} {other}<in>{first}<out>"

    def parse_answer(self, type: str, text: str) -> str | None:
        return text.strip() or None

    def gold_answer(self, task: Task) -> str | None:
        return task.outputs[0]

    def write_proposal(self, task: Task) -> str:
        first, sign, other = task.program.split()
        return f" {sign} {other}<in>{first}"

    def write_answer(self, task: Task) -> str:
        return task.outputs[0]


class Arithmetic(Domain):
    """Sums, differences and products of whole numbers."""

    types: ClassVar[Mapping[str, str]] = {"calculate": "find the value"}
    formats = Registry("base.prompt_format")
    rules = ("trivial",)
    measures = (Metric("digits", "Digits", "per task", "digits", section="complexity"),)

    def judge(
        self, proposals: Sequence[ParsedProposal], referee: Referee, rules: TaskConfig
    ) -> list[Task | str]:
        refuse = self.rules if rules.reject is None else rules.reject
        return [self._judge(proposal, "trivial" in refuse) for proposal in proposals]

    def _judge(self, proposal: ParsedProposal, refuse_trivial: bool) -> Task | str:
        value = _value(proposal.program)
        if refuse_trivial and str(value) in proposal.program.split():
            return "trivial"
        return Task(proposal.type, proposal.program, proposal.inputs, (str(value),))

    def grade(
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        return [[_verdict(answer, task) for answer in answers] for task, answers in asked]

    def measure(self, program: str) -> dict[str, float]:
        return {"digits": sum(char.isdigit() for char in program)}

    def eval_tasks(self, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
        random = Random(seed)
        programs = [f"{random.randrange(10, 30)} + {random.randrange(5)}" for _ in range(per_type)]
        return [Task("calculate", program, ("",), (str(_value(program)),)) for program in programs]


Arithmetic.formats.register("sums", "programs that the base completes")(Sums)


def _value(program: str) -> int:
    first, sign, other = program.split()
    return int(OPERATORS[sign](int(first), int(other)))


def _verdict(answer: str, task: Task) -> Verdict:
    solved = answer == task.outputs[0]
    return Verdict(solved, "solved" if solved else "wrong")
