"""A fixed exam: the same held-out tasks for every member that solves, at every sitting.

Self-play's own solve rate mixes skill with the drift of the tasks; the exam holds the tasks still.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from azr_population.engines.engine import Engine, Sampling
from azr_population.members import Member
from azr_population.referee import Referee
from azr_population.selfplay.questions import question
from azr_population.tasks.formats import Format
from azr_population.tasks.task import Task, TaskType


class Exam:
    """A list of tasks, answered greedily (one attempt) or by several samples at temperature 1."""

    def __init__(
        self, tasks: Sequence[Task], attempts: int, generator: Callable[[], torch.Generator]
    ) -> None:
        """`generator` makes the same generator for every sitting, on the engine's device."""
        self.tasks = list(tasks)
        self.attempts = attempts
        self._generator = generator

    def sit(
        self,
        engine: Engine,
        referee: Referee,
        format: Format,
        members: Sequence[Member],
        attempts: int = 0,
    ) -> dict[str, Any]:
        """Scores in [0, 1]: `members` by name, their `mean`, `best` and `worst`, and by `types`.

        `attempts` at each task, 0 for the exam's own number, are recorded beside the scores.
        """
        attempts = attempts or self.attempts
        scores: dict[str, dict[str, list[float]]] = {member.name: {} for member in members}
        for type in TaskType:
            tasks = [task for task in self.tasks if task.type is type]
            solved_by = self._solve(engine, referee, format, type, tasks, members, attempts)
            for member, solved in zip(members, solved_by, strict=True):
                scores[member.name][str(type)] = solved
        totals = {
            name: _mean([value for values in types.values() for value in values])
            for name, types in scores.items()
        }
        return {
            "members": totals,
            "mean": _mean(list(totals.values())),
            "best": max(totals.values()),
            "worst": min(totals.values()),
            "attempts": attempts,
            "types": {
                str(type): _mean([v for types in scores.values() for v in types[str(type)]])
                for type in TaskType
                if any(task.type is type for task in self.tasks)
            },
        }

    def _solve(
        self,
        engine: Engine,
        referee: Referee,
        format: Format,
        type: TaskType,
        tasks: Sequence[Task],
        members: Sequence[Member],
        attempts: int,
    ) -> list[list[float]]:
        """For each member, the share of its attempts at each task that solved it."""
        sheets = [(member, task) for member in members for task in tasks]
        sampling = Sampling(
            format.max_new_tokens(type, "solve"),
            temperature=0.0 if attempts == 1 else 1.0,
            n=attempts,
        )
        completions = engine.generate(
            [format.solve_prompt(task) for _, task in sheets],
            [member.slot for member, _ in sheets],
            sampling,
            self._generator(),
        )
        answers = [
            [format.parse_answer(type, one.text) if one.finished else None for one in group]
            for group in completions
        ]
        questions = [
            question(task, [text for text in texts if text is not None])
            for (_, task), texts in zip(sheets, answers, strict=True)
        ]
        rates = [
            sum(grade.solved for grade in grades) / attempts for grades in referee.grade(questions)
        ]
        return [rates[i * len(tasks) : (i + 1) * len(tasks)] for i in range(len(members))]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
