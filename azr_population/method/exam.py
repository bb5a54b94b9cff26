"""A fixed exam: the same held-out tasks for every member that solves, at every sitting.

Self-play's own solve rate mixes skill with the drift of the tasks; the exam holds the tasks still.

Where a task has one right answer, written in one way, its score is that answer's probability, which
needs no samples. Elsewhere it is the share of right answers among samples at temperature 1, whose
random numbers belong to (exam, run, step, member): neither who else sits nor how many they are
changes a member's score, and two sittings share no noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from azr_population.config.schema import Config
from azr_population.domains.format import read_answer
from azr_population.domains.task import Task
from azr_population.engines.engine import Sampling
from azr_population.method.members import Member
from azr_population.method.tools import Tools, domain_of
from azr_population.runs.streams import Streams


@dataclass(frozen=True)
class Sitting:
    """What came out: for each member its score in [0, 1] at each task, in the exam's order."""

    types: tuple[str, ...]
    """Of the tasks."""
    scores: dict[str, list[float]]
    attempts: int
    """Samples at each task that was sampled."""

    def summary(self) -> dict[str, Any]:
        """Means over tasks: `members` by name, their `mean`, `best`, `worst`, and by `types`."""
        members = {name: _mean(scores) for name, scores in self.scores.items()}
        return {
            "members": members,
            "mean": _mean(list(members.values())),
            "best": max(members.values()),
            "worst": min(members.values()),
            "attempts": self.attempts,
            "types": {
                type: _mean(
                    [
                        score
                        for scores in self.scores.values()
                        for of, score in zip(self.types, scores, strict=True)
                        if of == type
                    ]
                )
                for type in dict.fromkeys(self.types)
            },
        }

    def records(self, step: int, members: Sequence[Member]) -> list[dict[str, Any]]:
        """The lines of `exams.jsonl`, one per member: what every later analysis starts from."""
        return [
            {
                "step": step,
                "member": member.name,
                "generation": member.generation,
                "attempts": self.attempts,
                "scores": [round(score, 6) for score in self.scores[member.name]],
            }
            for member in members
        ]


class Exam:
    """A list of tasks and how often each is attempted where answers have to be sampled."""

    def __init__(self, tasks: Sequence[Task], attempts: int, seed: int) -> None:
        """`seed` is the exam's own; see `sit` for the run's."""
        self.tasks = list(tasks)
        self.attempts = attempts
        self._streams = Streams(seed)

    def sit(
        self,
        tools: Tools,
        members: Sequence[Member],
        run_seed: int,
        step: int,
        attempts: int = 0,
    ) -> Sitting:
        """Every member at every task; `attempts` of 0 are the exam's own number."""
        attempts = attempts or self.attempts
        engine, format = tools.engine, tools.format
        gold = [format.gold_answer(task) for task in self.tasks]
        exact = [i for i, answer in enumerate(gold) if answer is not None]
        sampled = [i for i, answer in enumerate(gold) if answer is None]
        scores = {}
        for member in members:
            by_task = [0.0] * len(self.tasks)
            likelihoods = engine.likelihoods(
                [format.solve_prompt(self.tasks[i]) for i in exact],
                [str(gold[i]) for i in exact],
                [member.slot] * len(exact),
            )
            seed = self._streams.integer(f"exam {run_seed} {member.name}", step)
            tasks = [self.tasks[i] for i in sampled]
            rates = _solve(tools, tasks, member, attempts, seed)
            for place, score in zip([*exact, *sampled], [*likelihoods, *rates], strict=True):
                by_task[place] = score
            scores[member.name] = by_task
        return Sitting(tuple(str(task.type) for task in self.tasks), scores, attempts)


def held_out_exam(config: Config) -> Exam:
    """The exam that the run's `exam` group describes, of the task types that it plays."""
    own = config.exam
    return Exam(exam_tasks(config, own.tasks_per_type, own.seed), own.attempts, own.seed)


def exam_tasks(config: Config, per_type: int, seed: int) -> list[Task]:
    """Held-out tasks of the types that the run plays."""
    domain = domain_of(config)
    return domain.exam(per_type, seed, domain.wanted(config.task.types))


def _solve(
    tools: Tools, tasks: Sequence[Task], member: Member, attempts: int, seed: int
) -> list[float]:
    """The share of the member's attempts at each task that solved it."""
    format = tools.format
    sampling = Sampling(
        tuple(format.max_new_tokens(task.type, "solve") for task in tasks),
        n=attempts,
    )
    prompts = [format.solve_prompt(task) for task in tasks]
    completions = tools.engine.generate(prompts, [member.slot] * len(tasks), sampling, seed)
    answers = [
        [read_answer(format, task.type, completion) for completion in group]
        for task, group in zip(tasks, completions, strict=True)
    ]
    asked = [
        (task, [text for text in texts if text is not None])
        for task, texts in zip(tasks, answers, strict=True)
    ]
    judged = tools.domain.grade(asked, tools.referee)
    return [sum(verdict.solved for verdict in of_task) / attempts for of_task in judged]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
