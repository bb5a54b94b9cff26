"""The loop of a local run: step after step, and the exam.

Not covered here: how a phase works (`phases.py`), what a population does (`method/`), how a run
is put together from a configuration (`local_run.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from azr_population.config.schema import Config
from azr_population.domains.code.formats import Format
from azr_population.domains.code.held_out import HeldOut
from azr_population.engines.text import TextEngine
from azr_population.method import phases
from azr_population.method.clock import PhaseClock
from azr_population.method.evolution.fitness import MEASURED
from azr_population.method.evolution.replacement import Replacement
from azr_population.method.exam import Exam, Sitting
from azr_population.method.members import Member
from azr_population.method.past import PastStudents
from azr_population.method.population import Population, StepRecords
from azr_population.method.record import guest_metrics
from azr_population.method.rows import Row
from azr_population.method.skill import by_crossplay, by_exam
from azr_population.method.training import attempts, proposals, samples
from azr_population.method.transcript import Transcript
from azr_population.referee import Referee
from azr_population.weights.breeding import Making, bred
from azr_population.weights.similarity import mean_cosine


class SelfPlay:
    """The population and all that a step needs."""

    def __init__(
        self,
        config: Config,
        engine: TextEngine,
        referee: Referee,
        format: Format,
        exam: Exam | None,
        validation: Exam | None = None,
        past: PastStudents | None = None,
    ) -> None:
        self.config = config
        self.engine = engine
        self.referee = referee
        self.format = format
        self.exam = exam
        self.validation = validation
        self.past = past
        held_out = [task.program for one in (exam, validation) if one for task in one.tasks]
        self.held_out = HeldOut(held_out)
        self.population = Population(
            config.population,
            config.matchmaking,
            config.evolution,
            config.seed,
            config.task.buffer_size,
        )
        self.population.transcript = Transcript(config.run.completions, engine.tokenizer)

    @property
    def step(self) -> int:
        """The number of the last step done."""
        return self.population.step

    def play_step(self) -> StepRecords:
        """Plays the next step."""
        config, population, clock = self.config, self.population, PhaseClock()
        streams, step = population.streams, population.step + 1
        with clock("match"):
            population.begin_step(step)
        with clock("propose"):
            rows = phases.propose(
                self.engine,
                self.format,
                population,
                config.task,
                config.engine,
                streams.numpy("references", step),
                streams.integer("propose", step),
            )
        guest = None
        if self.past:
            guest = self.past.take_over(rows, step, self.engine, streams.numpy("past", step))
        with clock("verify"):
            phases.verify(rows, self.referee, config.task, self.held_out)
        with clock("solve"):
            phases.solve(
                rows,
                self.engine,
                self.format,
                config.population.attempts,
                config.engine,
                streams.integer("solve", step),
            )
        with clock("grade"):
            phases.grade(rows, self.referee)
            population.reward(rows)
        with clock("update"):
            matched = [row for row in rows if row.match in population.matches]
            drawn = attempts(matched, config.population, streams.numpy("attempts", step))
            credited = samples([*proposals(rows), *drawn])
            updates = self.engine.update(credited, population.learning_rates())
            for slot, of_member in credited.items():
                updates[slot]["rows"] = len(of_member)
        if config.evolution.fitness in MEASURED and population.turnover.is_due(step):
            with clock("fitness"):
                self._measure_skill(rows)
        records = population.finish_step(rows, updates, self._make_child)
        for member in population.roster:
            member.skill = None
        with clock("exam"):
            sitting = self._sit_exam()
        records.metrics["seconds"] = clock.total()
        records.metrics["phases"] = {**clock.phases, **records.metrics["phases"]}
        records.metrics["exam"] = sitting.summary() if sitting else None
        for role, members in population.roster.sub_populations.items() if sitting else ():
            updates_of = [self.engine.read(member.slot) for member in members]
            records.metrics["roles"][str(role)]["weight_cosine"] = mean_cosine(updates_of)
        if guest:
            records.metrics["past"] = guest_metrics(guest, rows)
        if self.exam:
            records.metrics["held_out"] = {
                "refused": sum(row.reason == phases.HELD_OUT for row in rows),
                "near_copies": sum(
                    row.task is not None and self.held_out.is_near_copy(row.task.program)
                    for row in rows
                ),
            }
        exams = sitting.records(self.step, population.roster.students) if sitting else []
        return replace(records, exams=exams)

    def _make_child(self, replacement: Replacement, recipe: dict[str, Any], seed: int) -> Making:
        parents = [self.engine.read(parent.slot) for parent in replacement.parents]
        child, making = bred(parents, recipe, seed)
        self.engine.write(replacement.victim.slot, child)
        return making

    def _measure_skill(self, rows: Sequence[Row]) -> None:
        students = self.population.roster.students

        def sit(exam: Exam, members: Sequence[Member]) -> dict[str, list[float]]:
            seed = self.config.seed
            own = (self.engine, self.referee, self.format, members, seed, self.step)
            return exam.sit(*own).scores

        if self.validation:
            by_exam(self.validation, students, sit)
        else:
            by_crossplay(rows, students, sit, self.config.population.attempts)

    def _sit_exam(self) -> Sitting | None:
        every = self.config.exam.every
        # A gain is a difference of these two, so that both are measured alike.
        first_or_last = self.step in (1, self.config.run.steps)
        if self.exam is None or not every or (self.step % every and not first_or_last):
            return None
        return self.exam.sit(
            self.engine,
            self.referee,
            self.format,
            self.population.roster.students,
            self.config.seed,
            self.step,
            self.config.exam.final_attempts if first_or_last else 0,
        )
