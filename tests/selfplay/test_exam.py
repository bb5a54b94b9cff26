"""The exam: who sits it, when, and with how many attempts."""

import pytest
import torch

from azr_population.selfplay.exam import Exam
from azr_population.tasks.task import Task, TaskType


@pytest.fixture
def exam():
    """Twenty tasks as the scripted engine understands them, two attempts at each."""
    tasks = [
        Task(TaskType.CODE_O, f"def f(a):\n    return a + {n}", ("3",), (str(n + 3),))
        for n in range(2, 22)
    ]
    return Exam(tasks, 2, lambda: torch.Generator().manual_seed(1))


@pytest.fixture
def populations(config):
    config.population.teachers = config.population.students = 2
    config.exam.every = 2
    config.run.steps = 5


def exams(game, steps):
    records = [game.play_step().metrics for _ in range(steps)]
    return {record["step"]: record["exam"] for record in records if record["exam"]}


def test_students_sit_it_and_their_scores_are_their_skills(play, exam, populations):
    found = exams(play([1.0, 1.0, 1.0, 0.0], exam), 1)[1]
    assert found["members"] == {"student_0": 1.0, "student_1": 0.0}
    assert (found["mean"], found["best"], found["worst"]) == (0.5, 1.0, 0.0)
    assert found["types"] == {"code_o": 0.5}


def test_it_is_sat_at_the_start_every_so_often_and_at_the_end(play, exam, populations):
    assert list(exams(play([1.0, 1.0, 0.5, 0.5], exam), 5)) == [1, 2, 4, 5]


def test_the_last_sitting_may_be_longer(play, exam, populations, config):
    config.exam.final_attempts = 10
    found = exams(play([1.0, 1.0, 0.5, 0.5], exam), 5)
    assert {step: sitting["attempts"] for step, sitting in found.items()} == {
        1: 2,
        2: 2,
        4: 2,
        5: 10,
    }
    # Twenty tasks with two attempts give scores in fortieths, with ten in two hundredths.
    for step, places in ((4, 40), (5, 200)):
        for score in found[step]["members"].values():
            assert score * places == pytest.approx(round(score * places))


def test_every_sitting_draws_alike(play, exam, populations):
    found = exams(play([1.0, 1.0, 0.5, 0.5], exam), 2)
    assert found[1]["members"] == found[2]["members"], "scripted students do not learn"
