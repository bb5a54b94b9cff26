"""A domain of one's own: the teacher writes an equation and a solution, the student solves it.

    cd examples
    azr-population train task.domain=equations.Equations base.prompt_format=equations \
        run.dir=../runs/equations

The teacher writes an expression in n and a value of n; the referee computes what it gives. The
student sees the expression and the result, and any n with that result is right. Only the referee
runs what a model wrote. It plays on the base that ships: prompts begin a program that the base
completes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from azr_population.config.schema import TaskConfig
from azr_population.domains.domain import Domain, Verdict
from azr_population.domains.format import Format
from azr_population.domains.metric import Metric
from azr_population.domains.task import ParsedProposal, Task
from azr_population.referee import Program, Question, Referee
from azr_population.registry import Registry

HEAD = "def f(n):\n    return n"
EASY = tuple(map(str, range(-2, 3)))
"""Values of n that anybody tries first: an equation that one of them solves is refused."""


class EquationPrompts(Format):
    """` * 3 + 2<in>5` completes the prompt to an equation that 5 solves."""

    chat: ClassVar[bool] = False
    PROPOSE: ClassVar[Mapping[str, str]] = {"equation": f"<PI>{HEAD}"}
    SOLVE: ClassVar[Mapping[str, str]] = {"equation": "<SI>{program}<out>{output}<in>"}
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]] = {"equation": (24, 16)}

    def parse_proposal(self, type: str, text: str) -> ParsedProposal | None:
        expression, *solutions = text.split("<in>")
        if len(solutions) != 1 or not expression.strip() or "\n" in expression:
            return None
        return ParsedProposal(type, HEAD + expression, (solutions[0].strip(),))

    def parse_answer(self, type: str, text: str) -> str | None:
        return text.strip() or None

    def write_proposal(self, task: Task) -> str:
        return f"{task.program.removeprefix(HEAD)}<in>{task.inputs[0]}"

    def write_answer(self, task: Task) -> str:
        return task.inputs[0]


class Equations(Domain):
    """Equations in n, such as n * 3 + 2 == 17."""

    types: ClassVar[Mapping[str, str]] = {"equation": "find n"}
    formats = Registry("base.prompt_format")
    rules = ("easy",)
    measures = (Metric("digits", "Digits", "per task", "digits", section="complexity"),)

    def judge(
        self, proposals: Sequence[ParsedProposal], referee: Referee, rules: TaskConfig
    ) -> list[Task | str]:
        """Valid: the expression runs on the solution, and no easy value solves it."""
        programs = [Program(p.program, p.inputs, literal_inputs=True) for p in proposals]
        verdicts: list[Task | str] = [
            Task(**vars(proposal), outputs=run.outputs) if run.valid else run.reason.value
            for proposal, run in zip(proposals, referee.check(programs), strict=True)
        ]
        if "easy" in (self.rules if rules.reject is None else rules.reject):
            tasks = [task for task in verdicts if isinstance(task, Task)]
            tried = iter(self.grade([(task, EASY) for task in tasks], referee))
            for place, task in enumerate(verdicts):
                if isinstance(task, Task) and any(verdict.solved for verdict in next(tried)):
                    verdicts[place] = "easy"
        return verdicts

    def grade(
        self, asked: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """An answer is right if the expression gives the same value for it."""
        questions = [
            Question("code_i", task.program, task.inputs, task.outputs, tuple(answers))
            for task, answers in asked
        ]
        return [
            [Verdict(grade.solved, grade.reason.value) for grade in grades]
            for grades in referee.grade(questions)
        ]

    def answer(self, task: Task) -> str:
        return task.inputs[0]

    def measure(self, program: str) -> dict[str, float]:
        return {"digits": sum(char.isdigit() for char in program)}

    def eval_tasks(self, per_type: int, seed: int, types: Sequence[str]) -> list[Task]:
        """The right side is computed here: these expressions are ours."""
        random, tasks = Random(seed), dict[str, Task]()
        while len(tasks) < per_type:
            factor, summand, n = random.randint(2, 5), random.randint(1, 9), random.randint(3, 9)
            program, value = f"{HEAD} * {factor} + {summand}", n * factor + summand
            tasks[program] = Task("equation", program, (str(n),), (str(value),))
        return list(tasks.values())


Equations.formats.register("equations", "programs that the base completes")(EquationPrompts)
