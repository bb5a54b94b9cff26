"""Fitness that is measured just before members are replaced, instead of taken from ratings.

`validation_eval`: the students' greedy score on an eval with another seed, which shares no task
with the reported eval; teachers keep their rating. `crossplay`: every student attempts every
teacher's tasks of the step. A student's fitness is the share it solves, a teacher's the share left
unsolved, where an invalid proposal counts 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from azr_population.config.schema import EvolutionConfig, TaskConfig
from azr_population.domains.known import find_domain
from azr_population.domains.task import Task
from azr_population.method.callbacks import Callback
from azr_population.method.held_out_eval import HeldOutEval, reliability
from azr_population.method.members import Member
from azr_population.method.population import Population
from azr_population.method.proposals import BufferAttempt, Proposal
from azr_population.method.record import StepRecords
from azr_population.method.step_context import StepContext
from azr_population.runs.records import mean


def validation_eval(
    evolution: EvolutionConfig, tasks: TaskConfig, reported: HeldOutEval | None
) -> HeldOutEval | None:
    """The eval for `evolution.fitness=validation_eval`; None for any other fitness."""
    if evolution.fitness != "validation_eval":
        return None
    domain, seed = find_domain(tasks.domain), evolution.validation_seed
    eval_tasks = domain.eval_tasks(evolution.validation_tasks, seed, domain.wanted(tasks.types))
    return without_reported(eval_tasks, seed, reported)


def without_reported(tasks: Sequence[Task], seed: int, reported: HeldOutEval | None) -> HeldOutEval:
    """An eval of these tasks without those of the reported eval."""
    programs = {task.program for task in reported.tasks} if reported else set()
    return HeldOutEval([task for task in tasks if task.program not in programs], 1, seed)


@dataclass
class MeasureFitness(Callback):
    """Sets the members' `skill` by the validation eval, or by cross-play without one."""

    context: StepContext
    validation: HeldOutEval | None
    seed: int
    """The run's."""
    phase = "fitness"
    _reliability: float | None = None

    def updated(
        self, population: Population, rows: Sequence[Proposal], practice: Sequence[BufferAttempt]
    ) -> None:
        if not population.evolution.should_evolve(population.step):
            return
        students = population.roster.students
        if self.validation:
            scores = [self.validation.greedy(self.context, student) for student in students]
        else:
            scores = self._play_all_pairs(rows, students, population)
        for student, task_scores in zip(students, scores, strict=True):
            student.skill = mean(task_scores)
        if scores[0]:
            measured = reliability(scores)
            self._reliability = measured[0] if measured else 0.0

    def _play_all_pairs(
        self, rows: Sequence[Proposal], students: Sequence[Member], population: Population
    ) -> list[list[float]]:
        """The students' scores at the step's valid tasks; sets the teachers' `skill`."""
        valid = [row for row in rows if row.task is not None]
        # A step has few tasks, so each is attempted several times.
        samples = population.config.samples_per_task
        pairs = HeldOutEval([row.task for row in valid if row.task], samples, 0)
        scores = [
            pairs.solve_rates(self.context, student, self.seed, population.step)
            for student in students
            if valid
        ] or [[] for _ in students]
        unsolved = {
            id(row): 1 - sum(rates) / len(rates)
            for row, rates in zip(valid, zip(*scores, strict=True), strict=True)
        }
        for teacher in population.roster.teachers:
            proposed = [row for row in rows if row.match.teacher is teacher]
            teacher.skill = mean(unsolved.get(id(row), 0.0) for row in proposed)
        return scores

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
