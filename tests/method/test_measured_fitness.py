"""Fitness that is measured before members are replaced."""

import pytest
from refusals import refuses

from azr_population.config.schema import Config, EvalConfig, EvolutionConfig, TaskConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.method.held_out_eval import HeldOutEval, held_out_eval, validation_eval


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
    assert all(member.measured_fitness is None for member in game.population.roster)
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


def measured(tasks, evals=None):
    """A configuration whose fitness is a validation eval of so many tasks per type."""
    evolution = EvolutionConfig(fitness="validation_eval", validation_tasks=tasks)
    task = TaskConfig(types=["code_o"])
    return Config(evolution=evolution, task=task, eval=evals or EvalConfig())


def test_the_validation_eval_shares_no_task_with_the_reported_one():
    config = measured(6)
    every = validation_eval(Code(), config, None)
    some = validation_eval(Code(), config, HeldOutEval(every.tasks[2:], 1, 1))
    assert len(every.tasks) == 6 and some.tasks == every.tasks[:2]
    assert validation_eval(Code(), Config(), None) is None
    with refuses("evolution.validation_seed"):
        validation_eval(Code(), config, every)


def test_the_validation_eval_has_all_strata_beside_a_large_reported_one():
    config = measured(60, EvalConfig(tasks_per_type=300))
    reported = held_out_eval(Code(), config)
    left = validation_eval(Code(), config, reported).tasks
    drawn = validation_eval(Code(), config, None).tasks
    tail = drawn[20:50]
    assert len(set(left) & set(tail)) >= 25 and not set(left) & set(reported.tasks)


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
