"""Trains and evaluates the members of the retention recipe.

Training is a student's in a run: `--samples` attempts per task, AZR's rewards (1, -0.5, -1), the
baseline `--baseline` (a run's `student_advantage`), AdamW. One thing differs: tasks do not come
from teachers, so that all arms have the same ones and something to learn. On the nano base they
are programs of one to ten statements; on another base they come from an AZR seed file, a quarter of
it held out.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from random import Random

from azr_population.bases.nano import nano_base_path
from azr_population.config.schema import LearnerConfig, TaskConfig
from azr_population.domains.code.chain_tasks import draw_eval_tasks, draw_tasks
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import ChatFormat, NanoFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.format import Format
from azr_population.engines.assembly import EngineSettings, text_engine
from azr_population.engines.engine import Completion, Hyperparameters, Sampling, TrainingSample
from azr_population.eval.right_answers import right_answers
from azr_population.method.advantages import attempt_values, task_relative
from azr_population.method.phases import valid_tasks
from azr_population.method.rewards import student_reward
from azr_population.referee import Referee
from azr_population.runs.streams import Streams
from azr_population.weights.adapter import Adapter, LoraSpec

O = TaskType.CODE_O  # noqa: E741
DEPTHS = 10
"""Statements of the longest program to train on."""
RIGHT_EACH = 4
"""Attempts per right answer: a step by right answers has one answer for so many attempts of a step
by rewards, because about that share of attempts is right and teaches something."""
SLOT = 0
"""The slot of the member that is trained."""


class MemberTrainer:
    """One engine, one pool of tasks, one eval; `fresh` are untrained members."""

    def __init__(self, arguments: argparse.Namespace, referee: Referee, members: int) -> None:
        self._arguments = arguments
        self._referee = referee
        self.streams = Streams(arguments.seed)
        base = Path(arguments.base or nano_base_path())
        self.base = str(base)
        self.format: Format = ChatFormat() if arguments.base else NanoFormat()
        if arguments.base:
            proposals = [p for p in Code().read_seeds(arguments.seed_file) if p.type == O]
            tasks = valid_tasks(proposals, Code(), referee, TaskConfig())
            self.eval_tasks, self._pool = (
                tasks[::4],
                [task for i, task in enumerate(tasks) if i % 4],
            )
        else:
            self.eval_tasks = draw_eval_tasks(arguments.eval_tasks, seed=7, types=(O,))
            self._pool = _training_tasks(3000, arguments.seed)
        settings = EngineSettings(
            self.base,
            tuple(f"slot {slot}" for slot in range(members)),
            LoraSpec(rank=arguments.rank, alpha=2.0 * arguments.rank),
            dtype=arguments.dtype,
            device=arguments.device,
            learner=LearnerConfig(
                importance_sampling_cap=0.0, micro_batch_tokens=arguments.micro_batch_tokens
            ),
        )
        self._engine = text_engine(settings, [self.streams.torch("parents")] * members)
        self.fresh = [self._engine.read(slot) for slot in range(members)]

    def base_sha256(self) -> str | None:
        """16 digits of the nano base's digest; None for another base."""
        if self._arguments.base:
            return None
        weights = (Path(self.base) / "model.safetensors").read_bytes()
        return hashlib.sha256(weights).hexdigest()[:16]

    def write(self, adapter: Adapter) -> None:
        """Sets the member that is trained and evaluated, with a fresh optimizer."""
        self._engine.write(SLOT, adapter)

    def read(self) -> Adapter:
        """The current member."""
        return self._engine.read(SLOT)

    def teach(self, tasks: str, sampling: str, step: int) -> float:
        """One step of a parent: on the nano base, whose tasks have one answer, supervised on right
        answers, which teach several times as much as rewards; on another base `train`."""
        if self._arguments.base:
            return self.train(tasks, sampling, step)
        arguments, generator = self._arguments, self.streams.numpy(tasks, step)
        count = arguments.tasks * arguments.samples // RIGHT_EACH
        chosen = [self._pool[i] for i in generator.choice(len(self._pool), count, replace=False)]
        samples = right_answers(self._engine, self.format, chosen, SLOT)
        self._engine.update({SLOT: samples}, {SLOT: Hyperparameters(arguments.learning_rate)})
        return 1.0

    def train(self, tasks: str, sampling: str, step: int) -> float:
        """One policy-gradient step; returns the share of right attempts.

        `tasks` and `sampling` name the random streams of tasks and samples.
        """
        arguments, generator = self._arguments, self.streams.numpy(tasks, step)
        chosen = generator.choice(len(self._pool), arguments.tasks, replace=False)
        answers = self._answer(
            [self._pool[index] for index in chosen],
            arguments.samples,
            self.streams.integer(sampling, step),
        )
        values: list[float | None] = []
        completions: list[Completion] = []
        for group in answers:
            rewards = [student_reward(parsed, solved) for _, parsed, solved in group]
            of_group = attempt_values(rewards, arguments.baseline)
            for (completion, _, _), value in zip(group, of_group, strict=True):
                if value is not None:
                    values.append(value)
                    completions.append(completion)
        if arguments.baseline != "positive_only":
            values = task_relative([value or 0.0 for value in values], [SLOT] * len(values))
        samples = [
            TrainingSample(completion, advantage)
            for completion, advantage in zip(completions, values, strict=True)
            if advantage is not None
        ]
        self._engine.update({SLOT: samples}, {SLOT: Hyperparameters(arguments.learning_rate)})
        solved = [right for group in answers for _, _, right in group]
        return sum(solved) / len(solved)

    def evaluate(self) -> list[float]:
        """The score at each task of the eval: greedy decoding for the nano base, the share of 4
        samples for another."""
        if isinstance(self.format, NanoFormat):
            answers = self._answer(
                self.eval_tasks, 1, self.streams.integer("exam"), temperature=0.0
            )
        else:
            answers = self._answer(self.eval_tasks, 4, self.streams.integer("exam"))
        return [sum(solved for _, _, solved in group) / len(group) for group in answers]

    def _answer(
        self, tasks: Sequence[Task], attempts: int, seed: int, temperature: float = 1.0
    ) -> list[list[tuple[Completion, bool, bool]]]:
        """By task: the completions, whether each parsed and whether it solved."""
        completions = self._engine.generate(
            [self.format.solve_prompt(task) for task in tasks],
            [SLOT] * len(tasks),
            Sampling(self.format.max_new_tokens(O, "solve"), temperature, n=attempts),
            seed,
        )
        answers = [
            [self.format.parse_answer(O, completion.text) for completion in group]
            for group in completions
        ]
        grades = self._referee.grade(
            [
                Code().question(task, [text for text in texts if text is not None])
                for task, texts in zip(tasks, answers, strict=True)
            ]
        )
        results = []
        for group, texts, verdicts in zip(completions, answers, grades, strict=True):
            given = iter(verdicts)
            results.append(
                [
                    (completion, text is not None, text is not None and next(given).solved)
                    for completion, text in zip(group, texts, strict=True)
                ]
            )
        return results


def _training_tasks(count: int, seed: int) -> list[Task]:
    """code_o tasks of all depths, without held-out programs."""
    rng = Random(f"retention {seed}")
    return [draw_tasks(rng, O, rng.randint(1, DEPTHS))[0] for _ in range(count)]
