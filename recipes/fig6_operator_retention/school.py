"""How a member of the retention recipe learns, and how it is evaluated.

Training is a student's in a run: `attempts` samples a task, AZR's rewards (1, -0.5, -1), what each
is worth beside the others at its task by `--baseline` (a run's `student_advantage`), AdamW. What
differs: on the nano base the tasks come from its grammar instead of teachers, a fifth of its core
and the rest of its long tail, so that all arms meet the same ones and have something to learn; on
another base they come from an AZR seed file, a quarter of them held out.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from random import Random

from azr_population.bases.nano import nano_base_path
from azr_population.bases.nano.eval_tasks import CORE, draw_eval_tasks, draw_task
from azr_population.bases.nano.tail import BANDS, TailGrammar
from azr_population.config.schema import LearnerConfig, TaskConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import ChatFormat, NanoFormat
from azr_population.domains.code.seed_file import read_seed_file
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.format import Format
from azr_population.engines.assembly import EngineSettings, text_engine
from azr_population.engines.engine import Completion, Hyperparameters, Sampling, TrainingSample
from azr_population.measuring.training_check import right_answers
from azr_population.method.advantages import BASELINES, RAW, task_relative
from azr_population.method.phases import seed_tasks
from azr_population.method.rewards import student_reward
from azr_population.referee import Referee
from azr_population.runs.streams import Streams
from azr_population.weights.adapter import Adapter, LoraSpec

O = TaskType.CODE_O  # noqa: E741
CORE_SHARE = 0.2
"""Of the training tasks, as when a base is accepted; the rest is its long tail."""
RIGHT_EACH = 4
"""Attempts of a step by rewards for which a step by right answers has one answer: about as many of
the attempts are right and teach something."""
SLOT = 0
"""Of the one member that is trained at a time."""


class School:
    """One engine, one stream of tasks, one eval; `fresh` are untrained members."""

    def __init__(self, arguments: argparse.Namespace, referee: Referee, members: int) -> None:
        self._arguments = arguments
        self._referee = referee
        self.streams = Streams(arguments.seed)
        base = Path(arguments.base or nano_base_path())
        self.base = str(base)
        self.format: Format = ChatFormat() if arguments.base else NanoFormat()
        if arguments.base:
            proposals = [p for p in read_seed_file(arguments.seed_file) if p.type == O]
            tasks = seed_tasks(proposals, Code(), referee, TaskConfig())
            self.exam, self._pool = tasks[::4], [task for i, task in enumerate(tasks) if i % 4]
        else:
            self.exam = draw_eval_tasks(arguments.exam, seed=7, types=(O,))
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
        """Of the nano base's weights, 16 digits; None for another base."""
        if self._arguments.base:
            return None
        weights = (Path(self.base) / "model.safetensors").read_bytes()
        return hashlib.sha256(weights).hexdigest()[:16]

    def enter(self, adapter: Adapter) -> None:
        """The member that is trained and examined from now on, with a fresh optimizer."""
        self._engine.write(SLOT, adapter)

    def leave(self) -> Adapter:
        """The member as it is now."""
        return self._engine.read(SLOT)

    def teach(self, tasks: str, luck: str, step: int) -> float:
        """One step of a parent: by rewards as `train`, or on the right answers to its tasks, which
        teach several times as much."""
        if self._arguments.parents == "rewards":
            return self.train(tasks, luck, step)
        arguments, generator = self._arguments, self.streams.numpy(tasks, step)
        count = arguments.tasks * arguments.attempts // RIGHT_EACH
        chosen = [self._pool[i] for i in generator.choice(len(self._pool), count, replace=False)]
        samples = right_answers(self._engine, self.format, chosen, SLOT)
        self._engine.update({SLOT: samples}, {SLOT: Hyperparameters(arguments.learning_rate)})
        return 1.0

    def train(self, tasks: str, luck: str, step: int) -> float:
        """One policy-gradient step; the share of attempts that solved.

        `tasks` and `luck` name the streams that tasks and samples are drawn from.
        """
        arguments, generator = self._arguments, self.streams.numpy(tasks, step)
        chosen = generator.choice(len(self._pool), arguments.tasks, replace=False)
        answers = self._answer(
            [self._pool[index] for index in chosen],
            arguments.attempts,
            self.streams.integer(luck, step),
        )
        baseline = BASELINES.find(arguments.baseline).function
        worth: list[float | None] = []
        completions: list[Completion] = []
        for group in answers:
            rewards = [student_reward(parsed, solved) for _, parsed, solved in group]
            values = baseline(rewards) or [None] * len(rewards)
            for (completion, _, _), value in zip(group, values, strict=True):
                if value is not None:
                    worth.append(value)
                    completions.append(completion)
        if arguments.baseline not in RAW:
            worth = task_relative([value or 0.0 for value in worth], [SLOT] * len(worth))
        samples = [
            TrainingSample(completion, advantage)
            for completion, advantage in zip(completions, worth, strict=True)
            if advantage is not None
        ]
        self._engine.update({SLOT: samples}, {SLOT: Hyperparameters(arguments.learning_rate)})
        solved = [one for group in answers for _, _, one in group]
        return sum(solved) / len(solved)

    def sit_exam(self) -> list[float]:
        """Whether each task of the eval is solved by greedy decoding, the exam's headline.

        Another base than the nano one is examined by the share of 4 samples.
        """
        if isinstance(self.format, NanoFormat):
            answers = self._answer(self.exam, 1, self.streams.integer("exam"), temperature=0.0)
        else:
            answers = self._answer(self.exam, 4, self.streams.integer("exam"))
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
        answers = [[self.format.parse_answer(O, one.text) for one in own] for own in completions]
        grades = self._referee.grade(
            [
                Code().question(task, [text for text in texts if text is not None])
                for task, texts in zip(tasks, answers, strict=True)
            ]
        )
        results = []
        for own, texts, marks in zip(completions, answers, grades, strict=True):
            given = iter(marks)
            results.append(
                [
                    (one, text is not None, text is not None and next(given).solved)
                    for one, text in zip(own, texts, strict=True)
                ]
            )
        return results


def _training_tasks(count: int, seed: int) -> list[Task]:
    """code_o tasks of the grammar, programs outside the held-out bucket."""
    rng = Random(f"retention {seed}")
    grammar = TailGrammar(rng)
    shares = (CORE_SHARE, *[(1 - CORE_SHARE) / len(BANDS)] * len(BANDS))
    drawn = rng.choices((CORE, *BANDS), shares, k=count)
    return [draw_task(grammar, O, stratum, rng.randrange(60), 60) for stratum in drawn]
