"""What holds for the domains that ship: their evals, their generators, their formats."""

import pytest

from azr_population.config.schema import TaskConfig
from azr_population.domains.domain import is_held_out
from azr_population.domains.known import find_domain
from azr_population.domains.task import ParsedProposal


@pytest.fixture(scope="module", params=["code"])
def domain(request):
    return find_domain(request.param)


@pytest.fixture(scope="module")
def tasks(domain):
    return domain.eval_tasks(6, 1, domain.resolve_types(None))


def test_the_eval_is_the_same_again_and_held_out(domain, tasks):
    types = domain.resolve_types(None)
    assert tasks == domain.eval_tasks(6, 1, types) != domain.eval_tasks(6, 2, types)
    assert [task.type for task in tasks] == [type for type in types for _ in range(6)]
    assert len(set(tasks)) == len(tasks) and all(is_held_out(task.program) for task in tasks)
    copies = domain.held_out([task.program for task in tasks])
    assert copies.is_copy(tasks[-1].program + "  # a comment")


def test_its_tasks_are_valid_and_solved_by_their_answers(domain, tasks, referee):
    proposals = [ParsedProposal(task.type, task.program, task.inputs) for task in tasks]
    asked = [(task, [domain.answer(task), "'?'"]) for task in tasks]
    assert domain.judge(proposals, referee, TaskConfig(reject=[])) == tasks
    verdicts = domain.grade(asked, referee)
    assert all([verdict.solved for verdict in pair] == [True, False] for pair in verdicts)


def test_formats_read_what_they_write(domain, tasks):
    for name in domain.formats:
        format = domain.format(name)
        for task in tasks:
            proposal = format.parse_proposal(task.type, format.write_proposal(task))
            assert (proposal.program, proposal.inputs) == (task.program, task.inputs)
            answer = format.parse_answer(task.type, format.write_answer(task))
            assert answer == domain.answer(task)
            gold = format.gold_answer(task)
            assert gold is None or format.parse_answer(task.type, gold) == answer
            assert format.propose_prompt(task.type, [task])
            lengths = [format.max_new_tokens(task.type, phase) for phase in ("solve", "propose")]
            assert min(lengths) > 0
        assert format.parse_proposal(tasks[0].type, "no block") is None
        assert format.parse_answer(tasks[0].type, "") is None
