from random import Random

import pytest
from chains import world
from chains.domain import DEPTHS, ChainFormat, Chains, draw_tasks

from azr_population.config.schema import TaskConfig
from azr_population.domains.domain import is_held_out
from azr_population.domains.task import ParsedProposal, Task
from azr_population.referee import Referee, RefereeSettings

PROGRAM = "def f(x):\n    m = x[::-1]\n    return m"


@pytest.fixture(scope="module")
def referee():
    with Referee(RefereeSettings(workers=1)) as made:
        yield made


def test_only_chains_on_their_digits_are_tasks(referee):
    proposals = [
        ParsedProposal("code_o", PROGRAM, ("[1, 2, 3]",)),
        ParsedProposal("code_o", PROGRAM, ("[1, 2, 3, 4, 5, 6]",)),
        ParsedProposal("code_o", PROGRAM, ("[1, 2, 1]",)),
        ParsedProposal("code_o", "def f(x):\n    return x[0]", ("[1, 2, 3]",)),
    ]
    verdicts = Chains().judge(proposals, referee, TaskConfig())
    assert verdicts[0] == Task("code_o", PROGRAM, ("[1, 2, 3]",), ("[3, 2, 1]",))
    assert verdicts[1:] == ["no_chain", "identity", "no_chain"]


@pytest.mark.parametrize("type", ["code_o", "code_i", "code_f"])
def test_our_own_answers_are_right_and_tasks_valid(type, referee):
    domain, format = Chains(), ChainFormat()
    tasks = domain.eval_tasks(DEPTHS, 7, [type])
    assert [len(task.program.split("\n")) - 2 for task in tasks] == list(range(1, DEPTHS + 1))
    assert all(is_held_out(task.program) for task in tasks)
    proposals = [format.parse_proposal(type, format.write_proposal(task)) for task in tasks]
    assert domain.judge(proposals, referee, TaskConfig()) == tasks
    answers = [(task, [format.parse_answer(type, format.write_answer(task))]) for task in tasks]
    assert all(verdict.solved for (verdict,) in domain.grade(answers, referee))


def test_the_last_line_of_an_answer_counts(referee):
    (task,) = draw_tasks(Random(3), "code_o", 2, 1)
    format = ChainFormat()
    right, wrong = world.trace(task.program, task.inputs[0]), "[0, 0, 0, 0, 0]"
    texts = [right, task.outputs[0], f"{right}\n{wrong}", f"{wrong}\n{task.outputs[0]}"]
    answers = [format.parse_answer("code_o", text) for text in texts]
    ((first, second, third, fourth),) = Chains().grade([(task, answers)], referee)
    assert (first.solved, second.solved, third.solved, fourth.solved) == (True, True, False, True)
    assert format.parse_answer("code_o", right + "<in>") is None
