"""Puzzles: `sat(x)` says whether x is right. After Schuster et al., "Programming Puzzles" (2021),
and, for self-play on them, Haluptzok et al., "Language Models Can Teach Themselves to Program
Better" (2022)."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import ClassVar

from azr_population.domains import drawn
from azr_population.domains.code.held_out import HeldOutPrograms
from azr_population.domains.code.questions import verdicts
from azr_population.domains.code.source import NOT_FINITE, is_finite, read_program
from azr_population.domains.domain import UNSTEADY, Domain, HeldOut, Rules, Verdict
from azr_population.domains.puzzles.candidates import candidates
from azr_population.domains.puzzles.formats import FORMATS
from azr_population.domains.puzzles.grammar import PUZZLE, make, puzzle_task
from azr_population.domains.puzzles.measures import MEASURES, SPACE, measure
from azr_population.domains.puzzles.p3 import read_p3, with_witnesses
from azr_population.domains.task import Proposal, Task
from azr_population.referee import Program, Question, Reason, Referee

ENTRY = "\n\n\ndef f(x, /):\n    return sat(x) is True\n"
"""What the referee calls: one answer, by place, so that the defaults of `sat` stay what they are.
"""

UNSOLVED = "unsolved"
_FIRST = 4
"""Candidates that are tried before the others, so that a `sat` that hangs costs little."""


class Puzzles(Domain):
    """`sat` and a witness; whoever answers sees `sat` alone."""

    types: ClassVar[Mapping[str, str]] = {PUZZLE: "find x"}
    formats = FORMATS
    rules = ("trivial",)
    measures = MEASURES
    space = SPACE

    def judge(
        self, proposals: Sequence[Proposal], referee: Referee, rules: Rules
    ) -> list[Task | str]:
        """Valid: deterministic, `sat(witness) is True`, and nothing trivial solves it."""
        verdicts: list[Task | str] = [_refused(one, rules) for one in proposals]
        places = [place for place, refused in enumerate(verdicts) if not refused]
        programs = [
            Program(proposals[at].program + ENTRY, proposals[at].inputs, literal_inputs=True)
            for at in places
        ]
        for at, execution in zip(places, referee.check(programs), strict=True):
            if not execution.valid:
                verdicts[at] = execution.reason.value
            elif execution.outputs != ("True",):
                verdicts[at] = UNSOLVED
            elif len(execution.inputs[0]) > rules.max_output_chars:
                verdicts[at] = "output_too_long"
            else:
                one = proposals[at]
                verdicts[at] = puzzle_task(one.program, *execution.inputs)
        refuse = self.rules if rules.reject is None else rules.reject
        if "trivial" in refuse:
            for part in (slice(0, _FIRST), slice(_FIRST, 4 * _FIRST), slice(4 * _FIRST, None)):
                self._try(verdicts, part, referee)
        return verdicts

    def _try(self, verdicts: list[Task | str], part: slice, referee: Referee) -> None:
        """Refuses the tasks that these of their candidates solve, or never end on."""
        tasks = [(at, one) for at, one in enumerate(verdicts) if isinstance(one, Task)]
        asked = [(one, candidates(one.program)[part]) for _, one in tasks]
        for (at, _), graded in zip(tasks, self.grade(asked, referee), strict=True):
            reasons = {verdict.reason for verdict in graded}
            if any(verdict.solved for verdict in graded):
                verdicts[at] = "trivial"
            elif bad := reasons & {UNSTEADY, Reason.TIMEOUT.value}:
                verdicts[at] = min(bad)

    def grade(
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """`sat(answer) is True`, in the referee; an answer is one literal."""

        def question(task: Task, answers: tuple[str, ...]) -> Question:
            return Question("code_i", task.program + ENTRY, task.inputs, ("True",), answers)

        return verdicts(referee, asked, question)

    def asked_by_hand(self, proposal: Proposal, referee: Referee, rules: Rules) -> Task | str:
        """A puzzle can be asked without a witness: `sat` alone says whether an answer is right."""
        if proposal.inputs:
            return super().asked_by_hand(proposal, referee, rules)
        return _refused(proposal, rules) or puzzle_task(proposal.program)

    def answer(self, task: Task) -> str:
        """The witness."""
        return "".join(task.inputs)

    def measure(self, program: str) -> dict[str, float]:
        return measure(program)

    def held_out(self, programs: Iterable[str]) -> HeldOut:
        return HeldOutPrograms(programs)

    def draw(self, type: str, rng: Random, held_out: bool = False) -> Task:
        return drawn.draw(make, rng, held_out)

    def read_seeds(self, path: str | Path) -> list[Proposal]:
        return read_p3(Path(path))

    def complete_seeds(self, seeds: Sequence[Proposal], referee: Referee) -> list[Proposal]:
        return with_witnesses(seeds, referee)

    def call(self, given: str, output: str) -> str:
        return f"sat({given}) -> {output}"


def _refused(proposal: Proposal, rules: Rules) -> str:
    """A reason to refuse it unexecuted, or nothing."""
    if len(proposal.program) > rules.max_program_chars:
        return "program_too_long"
    if not all(map(is_finite, proposal.inputs)):
        return NOT_FINITE
    # Alone, or its end could swallow or decorate our entry.
    tree = read_program(proposal.program).tree
    if tree is None:
        return Reason.SYNTAX_ERROR.value
    return "" if top_level_names(tree) == {"sat"} else Reason.NO_FUNCTION.value


def top_level_names(tree: ast.Module) -> set[str]:
    """`sat`, and `f`, as far as the program's top level defines them: the one has to be there, and
    the other is our entry's."""
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return defined & {"sat", "f"}
