"""The loop of a run: step after step, replacement at its interval, checkpoints, records.

Not covered here: how a phase works (`phases.py`), what is recorded (`record.py`), how a run is put
together from a configuration (`train.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from azr_population.conf.schema import Config
from azr_population.engines.engine import Engine
from azr_population.evolution.registry import breed
from azr_population.evolution.replacement import Replacement
from azr_population.matchmaking import Match, Matchmaker
from azr_population.members import RatingSystem, Role, Roster
from azr_population.referee import Referee
from azr_population.selfplay import phases, record
from azr_population.selfplay.exam import Exam
from azr_population.selfplay.streams import Streams
from azr_population.selfplay.turnover import Making, Turnover, rate_matches
from azr_population.tasks.buffer import TaskBuffer
from azr_population.tasks.formats import Format


@dataclass(frozen=True)
class StepRecords:
    """What a step adds to the records of a run, by their names."""

    metrics: dict[str, Any]
    matches: list[dict[str, Any]]
    lineage: list[dict[str, Any]]
    tasks: list[dict[str, Any]]


class SelfPlay:
    """The population and all that a step needs; `step` is the number of the last one done."""

    def __init__(
        self,
        config: Config,
        engine: Engine,
        referee: Referee,
        format: Format,
        exam: Exam | None,
    ) -> None:
        self.config = config
        self.engine = engine
        self.referee = referee
        self.format = format
        self.exam = exam
        self.streams = Streams(config.seed)
        self.ratings = RatingSystem(
            tau=config.matchmaking.tau,
            draw_probability=config.matchmaking.draw_probability,
            forfeit=config.matchmaking.forfeit,
        )
        self.roster = Roster.make(
            config.population.teachers, config.population.students, self.ratings.initial
        )
        self.matchmaker = Matchmaker(
            self.ratings, config.matchmaking.weighting, config.matchmaking.options
        )
        self.turnover = Turnover(config.evolution, self.streams, self.ratings.initial)
        self.buffer = TaskBuffer(config.task.buffer_size)
        self.step = 0

    def play_step(self) -> StepRecords:
        """Plays the next step."""
        self.step += 1
        step, config, clock = self.step, self.config, _Clock()
        with clock("match"):
            matches = self._matches()
        with clock("propose"):
            rows = phases.propose(
                self.engine,
                self.format,
                self.buffer,
                matches,
                config.population,
                config.task,
                config.engine,
                self.streams.numpy("references", step),
                self.streams.torch("propose", step, config.engine.device),
            )
        with clock("verify"):
            phases.verify(rows, self.referee, config.task)
            phases.count_copies(rows, self.buffer)
        with clock("solve"):
            phases.solve(
                rows,
                self.engine,
                self.format,
                config.population.attempts,
                config.engine,
                self.streams.torch("solve", step, config.engine.device),
            )
        with clock("grade"):
            phases.grade(rows, self.referee)
            phases.reward(rows, config.population)
        with clock("update"):
            samples = phases.training_samples(
                rows, config.population, self.streams.numpy("attempts", step)
            )
            updates = self.engine.update(samples, self._learning_rates())
            for slot, rows_of_member in samples.items():
                updates[slot]["rows"] = len(rows_of_member)
        with clock("rate"):
            match_records = rate_matches(step, matches, rows, self.matchmaker)
        with clock("evolve"):
            self.turnover.remember(
                {m.name: record.member_metrics(m, rows, {})["reward"] for m in self.roster}
            )
            births = self.turnover.replace(step, self.roster, self._make_child)
        with clock("exam"):
            exam = self._sit_exam()
        for row in rows:
            if row.task is not None:
                self.buffer.add(row.task)
        return StepRecords(
            metrics=record.step_record(
                step, clock.total(), clock.phases, self.roster, rows, updates, exam
            )
            | self.turnover.operators(step),
            matches=match_records,
            lineage=births,
            tasks=record.task_records(step, rows),
        )

    def state(self) -> dict[str, Any]:
        """Everything but the engine's state, as plain data for a checkpoint."""
        return {
            "step": self.step,
            "roster": self.roster.to_json(),
            "buffer": self.buffer.to_list(),
            **self.turnover.state(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """The inverse of `state`."""
        self.step = state["step"]
        self.roster = Roster.from_json(state["roster"])
        self.buffer.load_list(state["buffer"])
        self.turnover.load_state(state)

    def _matches(self) -> list[Match]:
        return self.matchmaker.draw(
            self.roster.teachers, self.roster.students, self.streams.numpy("match", self.step)
        )

    def _learning_rates(self) -> dict[int, float]:
        population = self.config.population
        rates = {
            Role.TEACHER: population.teacher_lr,
            Role.STUDENT: population.student_lr,
            Role.AGENT: population.agent_lr,
        }
        return {member.slot: rates[member.role] for member in self.roster}

    def _make_child(self, replacement: Replacement, recipe: dict[str, Any], seed: int) -> Making:
        child = breed(
            parents=[self.engine.read_member(parent.slot) for parent in replacement.parents],
            generator=torch.Generator().manual_seed(seed),
            **recipe,
        )
        self.engine.write_member(replacement.victim.slot, child.adapter)
        return Making(child.operator, child.options, child.step_sizes)

    def _sit_exam(self) -> dict[str, Any] | None:
        every = self.config.exam.every
        last = self.step == self.config.run.steps
        if self.exam is None or not every or (self.step % every and self.step != 1 and not last):
            return None
        attempts = self.config.exam.final_attempts if last else 0
        return self.exam.sit(self.engine, self.referee, self.format, self.roster.students, attempts)


class _Clock:
    """Wall-clock seconds per phase of a step."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._start = time.perf_counter()

    def total(self) -> float:
        return time.perf_counter() - self._start

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.phases[phase] = time.perf_counter() - start
