import pytest

from azr_population.domains.code.nano_format import NanoFormat
from azr_population.domains.code.task import Task, TaskType

FORMAT = NanoFormat()
O, I, F = TaskType.CODE_O, TaskType.CODE_I, TaskType.CODE_F  # noqa: E741
PROGRAM = "def f(n):\n    return n + 1"
INPUTS = ("1", "2", "3", "4", "5", "6")


def test_solve_prompts():
    task = Task(O, PROGRAM, ("3",), ("4",))
    assert FORMAT.solve_prompt(task) == f"<SO>{PROGRAM}<in>3<out>"
    task = Task(I, PROGRAM, ("3",), ("4",))
    assert FORMAT.solve_prompt(task) == f"<SI>{PROGRAM}<out>4<in>"
    task = Task(F, PROGRAM, INPUTS, ("2", "3", "4", "5", "6", "7"))
    assert FORMAT.solve_prompt(task) == "<SF><in>1<out>2<in>2<out>3<in>3<out>4<code>"


def test_proposals():
    assert [FORMAT.propose_prompt(type) for type in (O, I, F)] == ["<PO>", "<PI>", "<PF>"]
    proposal = FORMAT.parse_proposal(O, PROGRAM + "<in>[1, 2], 'a'")
    assert (proposal.type, proposal.program, proposal.inputs) == (O, PROGRAM, ("[1, 2], 'a'",))
    proposal = FORMAT.parse_proposal(F, PROGRAM + "<in>" + "<in>".join(INPUTS))
    assert proposal.inputs == INPUTS


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (O, PROGRAM),
        (O, PROGRAM + "<in>1<in>2"),
        (O, "<in>1"),
        (O, PROGRAM + "<in>1<out>2"),
        (I, "<SO>" + PROGRAM + "<in>1"),
        (F, PROGRAM + "<in>1<in>2"),
    ],
)
def test_malformed_proposals_are_none(type, text):
    assert FORMAT.parse_proposal(type, text) is None


def test_answers():
    assert FORMAT.parse_answer(O, " [1, 2]") == "[1, 2]"
    assert FORMAT.parse_answer(F, PROGRAM) == PROGRAM
    assert FORMAT.parse_answer(I, "1<out>2") is None
    assert FORMAT.parse_answer(O, " ") is None


def test_there_is_a_limit_for_every_phase():
    for type in TaskType:
        assert 0 < FORMAT.max_new_tokens(type, "solve") < FORMAT.max_new_tokens(type, "propose")
