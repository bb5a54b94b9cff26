"""A domain of one's own: the teacher writes an equation and a solution, the student solves it.

    cd examples
    azr-population train task.domain=equations.Equations base.prompt_format=equations \
        run.dir=../runs/equations

The teacher writes a function of a list and such a list; the referee computes what it gives. The
student sees the function and the result, and any list with that result is right. Only the referee
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

HEAD = "def f(x):\n    m = x"
EASY = tuple(str([digit] * 3) for digit in range(10))
"""Lists that anybody tries first: an equation that one of them solves is refused."""


class EquationPrompts(Format):
    """`[::-1]\\n    return m<in>[1, 2]` completes the prompt to an equation that [1, 2] solves."""

    chat: ClassVar[bool] = False
    PROPOSE: ClassVar[Mapping[str, str]] = {"equation": f"<PI>{HEAD}"}
    SOLVE: ClassVar[Mapping[str, str]] = {"equation": "<SI>{program}<out>{output}<in>"}
    TOKENS: ClassVar[Mapping[str, tuple[int, int]]] = {"equation": (144, 160)}

    def parse_proposal(self, type: str, text: str) -> ParsedProposal | None:
        expression, *solutions = text.split("<in>")
        if len(solutions) != 1 or not expression.strip():
            return None
        return ParsedProposal(type, HEAD + expression, (solutions[0].strip(),))

    def parse_answer(self, type: str, text: str) -> str | None:
        """The last line counts: the base writes the values of the variables first."""
        return text.strip().rsplit("\n", 1)[-1] or None

    def write_proposal(self, task: Task) -> str:
        return f"{task.program.removeprefix(HEAD)}<in>{task.inputs[0]}"

    def write_answer(self, task: Task) -> str:
        return task.inputs[0]


class Equations(Domain):
    """Equations in x, such as x[::-1] == [2, 1]."""

    types: ClassVar[Mapping[str, str]] = {"equation": "find x"}
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
        self, answered: Sequence[tuple[Task, Sequence[str]]], referee: Referee
    ) -> list[list[Verdict]]:
        """An answer is right if the expression gives the same value for it."""
        questions = [
            Question("code_i", task.program, task.inputs, task.outputs, tuple(answers))
            for task, answers in answered
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
        """Of one to eight statements. What they give is computed here: these programs are ours."""
        random, tasks = Random(seed), dict[Task, None]()
        while len(tasks) < per_type:
            x = [random.randrange(10) for _ in range(4)]
            program, last, value = "def f(x):", "x", x
            for name in "mnpqrstu"[: random.randint(1, 8)]:
                turns = {"{}[::-1]": value[::-1], "{0}[1:] + {0}[:1]": value[1:] + value[:1]}
                text, value = random.choice(list(turns.items()))
                program, last = f"{program}\n    {name} = {text.format(last)}", name
            program += f"\n    return {last}"
            tasks[Task("equation", program, (str(x),), (str(value),))] = None
        return list(tasks)


Equations.formats.register("equations", "programs that the base completes")(EquationPrompts)
