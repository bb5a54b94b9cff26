from random import Random

import pytest

from azr_population.config.load import load_config
from azr_population.config.schema import TaskConfig
from azr_population.domains.code import chains
from azr_population.domains.code.chain_tasks import (
    EVAL_DEPTHS,
    draw_eval_tasks,
    draw_tasks,
    strata,
)
from azr_population.domains.code.domain import Code
from azr_population.domains.code.formats import NanoFormat
from azr_population.domains.domain import is_held_out
from azr_population.domains.task import ParsedProposal, Task
from azr_population.hosts.local.local_plan import resolve

PROGRAM = "def f(x):\n    m = x[::-1]\n    return m"
NANO = resolve(load_config([])).config.task


def test_the_nano_base_is_asked_about_chains_alone_and_other_bases_about_any_program(referee):
    proposals = [
        ParsedProposal("code_o", PROGRAM, ("[1, 2, 3]",)),
        ParsedProposal("code_o", PROGRAM, ("[1, 2, 3, 4, 5, 6]",)),
        ParsedProposal("code_o", PROGRAM, ("[1, 2, 1]",)),
        ParsedProposal("code_o", "def f(x):\n    return x[0]", ("[1, 2, 3]",)),
    ]
    verdicts = Code().judge(proposals, referee, NANO)
    assert verdicts[0] == Task("code_o", PROGRAM, ("[1, 2, 3]",), ("[3, 2, 1]",))
    assert verdicts[1:] == ["no_chain", "identity", "no_chain"]
    usual = [verdict.outputs[0] for verdict in Code().judge(proposals[::3], referee, TaskConfig())]
    assert usual == ["[3, 2, 1]", "1"]


@pytest.mark.parametrize("type", ["code_o", "code_i", "code_f"])
def test_our_own_answers_are_right_and_tasks_valid(type, referee):
    domain, format = Code(), NanoFormat()
    tasks = draw_eval_tasks(EVAL_DEPTHS, 7, [type])
    assert [len(task.program.split("\n")) - 2 for task in tasks] == list(range(1, EVAL_DEPTHS + 1))
    assert all(is_held_out(task.program) for task in tasks)
    proposals = [format.parse_proposal(type, format.write_proposal(task)) for task in tasks]
    assert domain.judge(proposals, referee, NANO) == tasks
    answers = [format.parse_answer(type, format.write_answer(task)) for task in tasks]
    assert answers == [domain.answer(task) for task in tasks]
    asked = [(task, [answer, "'?'"]) for task, answer in zip(tasks, answers, strict=True)]
    verdicts = domain.grade(asked, referee)
    assert all((right.solved, wrong.solved) == (True, False) for right, wrong in verdicts)


def test_eval_tasks_differ_and_do_not_depend_on_other_types():
    tasks = draw_eval_tasks(60, 3, ["code_o", "code_i"])
    assert len(set(tasks)) == 120 and draw_eval_tasks(60, 3, ["code_i"]) == tasks[60:]
    assert draw_eval_tasks(60, 4, ["code_i"]) != tasks[60:]
    assert strata(12)[:2] == ["shallow/01_statements", "shallow/02_statements"]
    assert strata(24)[11:14] == ["shallow/06_statements", *["deep/07_statements"] * 2]


def test_a_program_that_is_trained_on_is_never_held_out():
    rng = Random(1)
    drawn = [draw_tasks(rng, "code_o", 1, inputs=2) for _ in range(200)]
    assert not any(is_held_out(task.program) for tasks in drawn for task in tasks)
    assert all(len(tasks) == 2 and tasks[0].program == tasks[1].program for tasks in drawn)


def test_the_same_texts_are_held_out_for_ever():
    assert sum(is_held_out(str(number)) for number in range(10_000)) == 202


def test_the_last_line_of_an_answer_counts(referee):
    (task,) = draw_tasks(Random(3), "code_o", 2)
    format = NanoFormat()
    right, wrong = chains.trace(task.program, task.inputs[0]), "[0, 0, 0, 0, 0]"
    texts = [right, task.outputs[0], f"{right}\n{wrong}", f"{wrong}\n{task.outputs[0]}"]
    answers = [format.parse_answer("code_o", text) for text in texts]
    ((first, second, third, fourth),) = Code().grade([(task, answers)], referee)
    assert (first.solved, second.solved, third.solved, fourth.solved) == (True, True, False, True)
    assert format.parse_answer("code_o", right + "<in>") is None
