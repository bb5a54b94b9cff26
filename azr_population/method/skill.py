"""Skill measured for fitness, where members are about to be replaced.

`validation_eval`: students answer greedily an eval of its own seed, without a reported task;
teachers have no eval and keep their rating. `crossplay`: every student attempts the step's tasks of
every teacher, matched or not; a student is worth what it solves, a teacher what it leaves unsolved,
an invalid proposal nothing.
"""

from collections.abc import Callable, Sequence

from azr_population.config.schema import Config
from azr_population.domains.task import Task
from azr_population.method.held_out_eval import HeldOutEval, eval_tasks
from azr_population.method.members import Member
from azr_population.method.proposals import Proposal

Sit = Callable[[HeldOutEval, Sequence[Member]], dict[str, list[float]]]
"""Every member at every task of an eval: scores in [0, 1] by member."""


def fitness_eval(config: Config, reported: HeldOutEval | None) -> HeldOutEval | None:
    """The eval that fitness goes by, without a task of the reported one; None for any other
    fitness."""
    evolution = config.evolution
    if evolution.fitness != "validation_eval":
        return None
    tasks = eval_tasks(config, evolution.validation_tasks, evolution.validation_seed)
    return validation_eval(config, tasks, reported)


def validation_eval(
    config: Config, tasks: Sequence[Task], reported: HeldOutEval | None
) -> HeldOutEval:
    """An eval of these tasks without those that are reported."""
    programs = {task.program for task in reported.tasks} if reported else set()
    left = [task for task in tasks if task.program not in programs]
    return HeldOutEval(left, config.eval.samples, config.evolution.validation_seed)


def by_eval(held_out: HeldOutEval, students: Sequence[Member], sit: Sit) -> None:
    """Sets the students' `skill` to their mean score."""
    for member, scores in zip(students, sit(held_out, students).values(), strict=True):
        member.skill = sum(scores) / len(scores)


def by_crossplay(
    rows: Sequence[Proposal], students: Sequence[Member], sit: Sit, attempts: int
) -> None:
    """Sets the `skill` of the rows' teachers and of the students; without a valid task, of the
    teachers alone."""
    valid = [row for row in rows if row.task is not None]
    held_out = HeldOutEval([row.task for row in valid if row.task], attempts, 0)
    scores = list(sit(held_out, students).values()) if valid else []
    for student, of_student in zip(students, scores, strict=False):
        student.skill = sum(of_student) / len(of_student)
    unsolved = {
        id(row): 1 - sum(column) / len(column)
        for row, column in zip(valid, zip(*scores, strict=True), strict=True)
    }
    for teacher in {id(row.match.teacher): row.match.teacher for row in rows}.values():
        proposed = [row for row in rows if row.match.teacher is teacher]
        teacher.skill = sum(unsolved.get(id(row), 0.0) for row in proposed) / len(proposed)
