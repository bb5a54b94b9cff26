"""Puzzles: `sat(x)` says whether x is right. After Schuster et al., "Programming Puzzles" (2021),
and, for self-play on them, Haluptzok et al., "Language Models Can Teach Themselves to Program
Better" (2022)."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import ClassVar

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.complexity import KINDS, SPACE
from azr_population.domains.code.domain import ProgramDomain
from azr_population.domains.code.source import NOT_FINITE, is_finite, read_program
from azr_population.domains.domain import UNSTEADY, draw_task
from azr_population.domains.puzzles.formats import FORMATS
from azr_population.domains.puzzles.grammar import PUZZLE, candidates, make, puzzle_task
from azr_population.domains.task import ParsedProposal, Task
from azr_population.referee import Execution, Program, Question, Reason, Referee

ENTRY = "\n\n\ndef f(x, /):\n    return sat(x) is True\n"
"""What the referee calls: one answer, by place, so that the defaults of `sat` stay what they are.
"""

UNSOLVED = "unsolved"
_FIRST = 4
"""Candidates that are tried before the others, so that a `sat` that hangs costs little."""


class Puzzles(ProgramDomain):
    """`sat` and a witness; whoever answers sees `sat` alone."""

    types: ClassVar[Mapping[str, str]] = {PUZZLE: "find x"}
    formats = FORMATS
    rules = ("trivial",)
    space = replace(SPACE, panels=tuple(f"takes {kind}" for kind in KINDS))

    def judge(
        self, proposals: Sequence[ParsedProposal], referee: Referee, rules: TaskConfig
    ) -> list[Task | str]:
        """Valid: deterministic, `sat(witness) is True`, and nothing trivial solves it."""
        verdicts = super().judge(proposals, referee, rules)
        if "trivial" in self.rejected(rules):
            for part in (slice(0, _FIRST), slice(_FIRST, 4 * _FIRST), slice(4 * _FIRST, None)):
                self._try(verdicts, part, referee)
        return verdicts

    def _try(self, verdicts: list[Task | str], part: slice, referee: Referee) -> None:
        """Refuses the tasks that these of their candidates solve, or never end on."""
        tasks = [(n, task) for n, task in enumerate(verdicts) if isinstance(task, Task)]
        asked = [(task, candidates(task.program)[part]) for _, task in tasks]
        for (n, _), graded in zip(tasks, self.grade(asked, referee), strict=True):
            reasons = {verdict.reason for verdict in graded}
            if any(verdict.solved for verdict in graded):
                verdicts[n] = "trivial"
            elif bad := reasons & {UNSTEADY, Reason.TIMEOUT.value}:
                verdicts[n] = min(bad)

    def refuse(self, proposal: ParsedProposal, rules: TaskConfig) -> str:
        """See `ProgramDomain`, as the next three."""
        if not all(map(is_finite, proposal.inputs)):
            return NOT_FINITE
        # Alone, or its end could swallow or decorate our entry.
        if read_program(proposal.program) is None:
            return Reason.SYNTAX_ERROR.value
        return "" if defined_names(proposal.program) == {"sat"} else Reason.NO_FUNCTION.value

    def program(self, proposal: ParsedProposal) -> Program:
        return Program(proposal.program + ENTRY, proposal.inputs, literal_inputs=True)

    def accept(
        self, proposal: ParsedProposal, execution: Execution, rules: TaskConfig
    ) -> Task | str:
        if execution.outputs != ("True",):
            return UNSOLVED
        if len(execution.inputs[0]) > rules.max_output_chars:
            return "output_too_long"
        return puzzle_task(proposal.program, *execution.inputs)

    def question(self, task: Task, answers: Sequence[str]) -> Question:
        """`sat(answer) is True`; an answer is one literal."""
        return Question("code_i", task.program + ENTRY, task.inputs, ("True",), tuple(answers))

    def draw(self, type: str, rng: Random, held_out: bool = False) -> Task:
        return draw_task(make, rng, held_out)

    def call(self, input: str, output: str) -> str:
        return f"sat({input}) -> {output}"


def defined_names(program: str) -> set[str]:
    """Which of `sat` and `f` the program's top level defines; none if it does not parse. The one
    has to be there, and the other is our entry's."""
    tree = read_program(program)
    functions = [node for node in (tree.body if tree else ()) if isinstance(node, ast.FunctionDef)]
    return {function.name for function in functions} & {"sat", "f"}
