"""Skill measured for fitness, where members are about to be replaced.

`validation_eval`: students answer greedily an exam of its own seed, without a reported task;
teachers have no exam and keep their rating. `crossplay`: every student attempts the step's tasks of
every teacher, matched or not; a student is worth what it solves, a teacher what it leaves unsolved,
an invalid proposal nothing.
"""

from collections.abc import Callable, Sequence

from azr_population.config.schema import Config
from azr_population.domains.task import Task
from azr_population.method.held_out_eval import Exam, exam_tasks
from azr_population.method.members import Member
from azr_population.method.proposals import Proposal

Sit = Callable[[Exam, Sequence[Member]], dict[str, list[float]]]
"""Every member at every task of an exam: scores in [0, 1] by member."""


def fitness_exam(config: Config, reported: Exam | None) -> Exam | None:
    """The exam that fitness goes by, without a task of the reported one; None for any other
    fitness."""
    evolution = config.evolution
    if evolution.fitness != "validation_eval":
        return None
    tasks = exam_tasks(config, evolution.validation_tasks, evolution.validation_seed)
    return validation_exam(config, tasks, reported)


def validation_exam(config: Config, tasks: Sequence[Task], reported: Exam | None) -> Exam:
    """An exam of these tasks without those that are reported."""
    programs = {task.program for task in reported.tasks} if reported else set()
    left = [task for task in tasks if task.program not in programs]
    return Exam(left, config.eval.samples, config.evolution.validation_seed)


def by_exam(exam: Exam, students: Sequence[Member], sit: Sit) -> None:
    """Sets the students' `skill` to their mean score."""
    for member, scores in zip(students, sit(exam, students).values(), strict=True):
        member.skill = sum(scores) / len(scores)


def by_crossplay(
    rows: Sequence[Proposal], students: Sequence[Member], sit: Sit, attempts: int
) -> None:
    """Sets the `skill` of the rows' teachers and of the students; without a valid task, of the
    teachers alone."""
    valid = [row for row in rows if row.task is not None]
    exam = Exam([row.task for row in valid if row.task], attempts, 0)
    scores = list(sit(exam, students).values()) if valid else []
    for student, of_student in zip(students, scores, strict=False):
        student.skill = sum(of_student) / len(of_student)
    unsolved = {
        id(row): 1 - sum(column) / len(column)
        for row, column in zip(valid, zip(*scores, strict=True), strict=True)
    }
    for teacher in {id(row.match.teacher): row.match.teacher for row in rows}.values():
        proposed = [row for row in rows if row.match.teacher is teacher]
        teacher.skill = sum(unsolved.get(id(row), 0.0) for row in proposed) / len(proposed)
