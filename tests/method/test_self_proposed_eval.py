"""The eval of the untrained teacher's tasks."""

import pytest
from refusals import refuses

from azr_population.hosts.local.observing import callbacks
from azr_population.method.self_proposed_eval import FILE, self_proposed_eval, write
from azr_population.method.step import SelfPlay


@pytest.fixture
def tools(play):
    """Of its slots; the last is the bare base, which proposes something valid half of the time."""
    return lambda *skill: play([*skill, 0.5]).tools


@pytest.fixture
def wanted(config, tmp_path):
    config.eval.self_proposed_tasks, config.run.dir = 11, str(tmp_path)
    config.task.types = ["code_o", "code_i"]
    return config


def test_the_bases_valid_tasks_are_drawn_alike_whoever_plays(wanted, tools):
    held_out = self_proposed_eval(wanted, tools(1.0, 0.0), [])
    assert [task.type for task in held_out.tasks] == ["code_o"] * 6 + ["code_i"] * 5
    assert len({task.program for task in held_out.tasks}) == 11
    wanted.seed += 1
    assert self_proposed_eval(wanted, tools(0.3), []).tasks == held_out.tasks
    wanted.eval.seed += 1
    assert self_proposed_eval(wanted, tools(0.3), []).tasks != held_out.tasks
    wanted.eval.self_proposed_tasks = 0
    assert self_proposed_eval(wanted, tools(0.3), []) is None


def test_it_leaves_out_what_is_reported(wanted, tools):
    first = self_proposed_eval(wanted, tools(1.0), []).tasks
    other = self_proposed_eval(wanted, tools(1.0), first[:3]).tasks
    assert not {task.program for task in first[:3]} & {task.program for task in other}


def test_what_is_kept_is_read_and_damage_is_told(wanted, tools, tmp_path):
    held_out = self_proposed_eval(wanted, tools(1.0), [])
    write(held_out, tmp_path)
    wanted.eval.seed += 1
    assert self_proposed_eval(wanted, tools(1.0), []).tasks == held_out.tasks
    (tmp_path / FILE).write_text('{"type": "code_o"}\n')
    with refuses("self_proposed_eval.jsonl"):
        self_proposed_eval(wanted, tools(1.0), [])


def test_a_base_that_proposes_too_little_is_told(wanted, tools):
    own = tools(1.0)
    own.engine.skill[-1] = 0.0
    with refuses("eval.self_proposed_tasks"):
        self_proposed_eval(wanted, own, [])


def test_students_sit_it_beside_the_eval(wanted, tools):
    wanted.population.teachers = wanted.population.students = 2
    wanted.eval.every = 1
    own = self_proposed_eval(wanted, tools(1.0), [])
    game = SelfPlay(wanted, tools(1.0, 1.0, 1.0, 0.0), own.tasks)
    game.callbacks = callbacks(game, own, None, own)
    step = game.play_step()
    assert step.metrics["eval/self_proposed"] == 0.5
    assert [row["self_proposed"] for row in step.evals] == [[1.0] * 11, [0.0] * 11]
    assert game.held_out.is_copy(own.tasks[0].program)
