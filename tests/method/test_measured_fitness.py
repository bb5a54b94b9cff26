"""Fitness that is measured before members are replaced."""

import pytest

from azr_population.domains.code.task_types import Task, TaskType
from azr_population.method.held_out_eval import HeldOutEval
from azr_population.method.measured_fitness import without_reported


@pytest.fixture
def four(config):
    config.population.teachers = config.population.students = 4
    config.evolution.interval = 2
    config.evolution.grace_period = 0
    config.task.types = ["code_o"]


def tasks(*added):
    return [
        Task(TaskType.CODE_O, f"def f(a):\n    return a + {n}", ("3",), (str(n + 3),))
        for n in added
    ]


def victims(game):
    game.play_step()
    births = game.play_step().lineage
    assert all(member.skill is None for member in game.population.roster)
    return {birth["child"]: birth["fitness"] for birth in births}


def test_a_validation_eval_replaces_who_scores_least_whatever_the_ratings(play, config, four):
    config.evolution.fitness = "validation_eval"
    game = play(
        [1.0] * 4 + [0.9, 0.1, 0.9, 0.9], validation=HeldOutEval(tasks(*range(2, 32)), 2, 5)
    )
    replaced = victims(game)
    assert replaced["student_1"]["victim"] < 0.4 and replaced["student_1"]["parents"][0] > 0.7
    # Teachers have no eval: TrueSkill points.
    (teacher,) = (fitness for name, fitness in replaced.items() if name.startswith("teacher"))
    assert not 0 <= teacher["victim"] <= 1


def test_cross_play_knows_teachers_whose_tasks_do_not_run(play, config, four):
    config.evolution.fitness = "crossplay"
    replaced = victims(play([1.0, 1.0, 0.1, 1.0, 0.6, 0.6, 0.6, 0.05]))
    assert set(replaced) == {"teacher_2", "student_3"}
    assert replaced["student_3"]["victim"] < 0.3 and 0 <= replaced["teacher_2"]["victim"] < 0.3


def test_the_validation_exam_shares_no_program_with_the_reported_one():
    held_out = without_reported(tasks(2, 3, 4), 9, HeldOutEval(tasks(3), 1, 1))
    assert [task.program[-1] for task in held_out.tasks] == ["2", "4"]


def test_it_is_told_how_reliable_measured_fitness_was(play, config, four):
    config.evolution.fitness = "validation_eval"
    validation = HeldOutEval(tasks(*range(2, 102)), 2, 5)
    recorded = {}
    for name, skill in (("unlike", [0.9, 0.1, 0.9, 0.9]), ("alike", [0.5] * 4)):
        game = play([1.0] * 4 + skill, validation=validation)
        assert "evolution/fitness_reliability" not in game.play_step().metrics
        step = game.play_step()
        recorded[name] = step.metrics["evolution/fitness_reliability"], step.notes
    (unlike, nothing), (alike, notes) = recorded["unlike"], recorded["alike"]
    assert unlike > 0.9 and not nothing
    # Scripted members of one skill draw alike by greedy decoding, so there is nothing to tell.
    assert alike == 0.0 and notes
