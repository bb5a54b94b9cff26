"""What is measured in a step. Callbacks change nothing that members learn from; hosts put them on.

A run inside AZR has only the transcript; the others need an engine that can be asked at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from azr_population.config.schema import EvalConfig
from azr_population.method.clock import PhaseClock
from azr_population.method.held_out_eval import HeldOutEval, reliability
from azr_population.method.members import Member
from azr_population.method.population import Population
from azr_population.method.proposals import BufferAttempt, Proposal
from azr_population.method.record import StepRecords, flatten
from azr_population.method.skill import by_crossplay, by_eval
from azr_population.method.step_context import StepContext
from azr_population.runs import RunDirectory
from azr_population.runs.run_warnings import find_warnings
from azr_population.weights.lowrank import mean_cosine


class Callback:
    """Looks at a step where it wants to."""

    phase = "record"
    """Its name in `time/<phase>`."""

    def proposed(self, population: Population, rows: list[Proposal]) -> None:
        """After proposing: nothing has been read yet."""

    def updated(
        self, population: Population, rows: Sequence[Proposal], practice: Sequence[BufferAttempt]
    ) -> None:
        """After the update: ratings and names are still those under which rows were written."""

    def recorded(
        self, population: Population, rows: Sequence[Proposal], records: StepRecords
    ) -> None:
        """At the end: may add to the records."""


class Callbacks:
    """All callbacks of a step, one after the other, timed."""

    def __init__(
        self, callbacks: Sequence[Callback], population: Population, clock: PhaseClock
    ) -> None:
        self._callbacks = callbacks
        self._population = population
        self._clock = clock

    def proposed(self, rows: list[Proposal]) -> None:
        """See `Callback`, as the others."""
        for callback in self._callbacks:
            with self._clock(callback.phase):
                callback.proposed(self._population, rows)

    def updated(self, rows: Sequence[Proposal], practice: Sequence[BufferAttempt] = ()) -> None:
        for callback in self._callbacks:
            with self._clock(callback.phase):
                callback.updated(self._population, rows, practice)

    def recorded(self, rows: Sequence[Proposal], records: StepRecords) -> None:
        for callback in self._callbacks:
            with self._clock(callback.phase):
                callback.recorded(self._population, rows, records)


@dataclass
class EvalCallback(Callback):
    """The eval: at its interval, after the first step and after the `last`."""

    tools: StepContext
    held_out: HeldOutEval
    settings: EvalConfig
    last: int
    seed: int
    """The run's."""
    self_proposed: HeldOutEval | None = None
    """Tasks of the untrained teacher."""
    phase = "eval"

    def recorded(
        self, population: Population, rows: Sequence[Proposal], records: StepRecords
    ) -> None:
        step, every = population.step, self.settings.every
        # A gain is a difference of these two, so that both are measured alike.
        first_or_last = step in (1, self.last)
        if not every or (step % every and not first_or_last):
            return
        students = population.roster.students
        attempts = self.settings.final_samples if first_or_last else 0
        sitting = self.held_out.evaluate(self.tools, students, self.seed, step, attempts)
        metrics, lines = sitting.metrics(students), sitting.records(step, students)
        if self.self_proposed:
            scores = [self.self_proposed.greedy(self.tools, student) for student in students]
            means = [sum(row) / len(row) for row in scores]
            metrics["eval/self_proposed"] = sum(means) / len(means)
            for line, row in zip(lines, scores, strict=True):
                line["self_proposed"] = row
        records.metrics |= metrics
        records.evals += lines


@dataclass
class WeightSimilarity(Callback):
    """How alike the members of a role are, at every eval."""

    tools: StepContext
    phase = "eval"

    def recorded(
        self, population: Population, rows: Sequence[Proposal], records: StepRecords
    ) -> None:
        for role, members in population.roster.sub_populations.items() if records.evals else ():
            adapters = [self.tools.engine.read(member.slot) for member in members]
            cosine = mean_cosine(adapters)
            records.metrics |= flatten(str(role), {"weight_cosine": cosine})


class HeldOutCounts(Callback):
    """How many valid proposals are nearly programs of the eval; `reason/held_out` counts those that
    are one."""

    def recorded(
        self, population: Population, rows: Sequence[Proposal], records: StepRecords
    ) -> None:
        records.metrics["eval/near_copies"] = sum(row.near_copy for row in rows)


@dataclass
class MeasureSkill(Callback):
    """The `skill` that measured fitness goes by, where members are about to be replaced: that of
    the eval, or of cross-play without one."""

    tools: StepContext
    held_out: HeldOutEval | None
    seed: int
    """The run's."""
    phase = "fitness"
    _reliability: float | None = None

    def updated(
        self, population: Population, rows: Sequence[Proposal], practice: Sequence[BufferAttempt]
    ) -> None:
        if not population.turnover.should_evolve(population.step):
            return

        def sit(held_out: HeldOutEval, members: Sequence[Member]) -> dict[str, list[float]]:
            at = (self.seed, population.step)
            scores = {
                # A step's few tasks say more by several answers, an eval by more tasks.
                member.name: held_out.greedy(self.tools, member)
                if self.held_out
                else held_out.solve_rates(self.tools, member, *at)
                for member in members
            }
            measured = reliability(list(scores.values()))
            self._reliability = measured[0] if measured else 0.0
            return scores

        students = population.roster.students
        if self.held_out:
            by_eval(self.held_out, students, sit)
        else:
            by_crossplay(rows, students, sit, population.config.samples_per_task)

    def recorded(
        self, population: Population, rows: Sequence[Proposal], records: StepRecords
    ) -> None:
        if self._reliability is None:
            return
        records.metrics["evolution/fitness_reliability"] = self._reliability
        if self._reliability <= 0:
            records.notes.append(
                "the students' measured skill differs by no more than noise "
                f"(reliability {self._reliability:.2f}): which of them was replaced is chance"
            )
        self._reliability = None


class Warn(Callback):
    """Notes what goes wrong, once, in the step in which it begins (`runs/run_warnings.py`)."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self._lines: list[dict[str, Any]] | None = None
        self._evals: list[dict[str, Any]] = []

    def recorded(
        self, population: Population, rows: Sequence[Proposal], records: StepRecords
    ) -> None:
        if self._lines is None:  # a resumed run has some
            self._lines, self._evals = list(self._run.metrics()), list(self._run.evals())
        self._lines.append(records.metrics)
        self._evals += records.evals
        warnings = find_warnings(self._lines, self._evals)
        records.notes += [warning.text for warning in warnings if warning.step == population.step]
