import pytest

from azr_population.domains.code.chat_format import ChatFormat
from azr_population.domains.code.task import Task, TaskType

PROGRAM = "def f(a):\n    return a + 1"
TASKS = {
    TaskType.CODE_O: Task(TaskType.CODE_O, PROGRAM, ("41",), ("42",)),
    TaskType.CODE_I: Task(TaskType.CODE_I, PROGRAM, ("41",), ("42",)),
    TaskType.CODE_F: Task(
        TaskType.CODE_F,
        PROGRAM,
        ("1", "2", "3", "40", "50", "60"),
        ("2", "3", "4", "41", "51", "61"),
        message="adds",
    ),
}


@pytest.mark.parametrize("type", TaskType)
def test_a_solve_prompt_shows_what_is_given_and_hides_what_is_asked(type):
    prompt = ChatFormat().solve_prompt(TASKS[type])
    assert (PROGRAM in prompt) == (type != TaskType.CODE_F)
    assert ("```input\n41\n" in prompt) == (type == TaskType.CODE_O)
    assert ("```output\n42\n" in prompt) == (type == TaskType.CODE_I)
    if type == TaskType.CODE_F:
        assert "```input\n3\n" in prompt and "adds" in prompt
        assert "40" not in prompt and "61" not in prompt


def test_proposals_are_parsed_from_the_last_program():
    text = f"first\n```python\nx\n```\nthen\n```python\n{PROGRAM}\n```\n```input\n1\n```"
    parsed = ChatFormat().parse_proposal(TaskType.CODE_O, text)
    assert (parsed.program, parsed.inputs) == (PROGRAM, ("1",))


def test_code_f_needs_all_its_inputs():
    program = f"```python\n{PROGRAM}\n```\n"
    inputs = [f"```input\n{i}\n```\n" for i in range(6)]
    form = ChatFormat()
    assert form.parse_proposal(TaskType.CODE_F, program + "".join(inputs[:5])) is None
    twice = form.parse_proposal(TaskType.CODE_F, program + "".join([*inputs[:5], inputs[0]]))
    assert twice.inputs == ("0", "1", "2", "3", "4")
    whole = form.parse_proposal(TaskType.CODE_F, program + "".join(inputs) + "```message\nhi\n```")
    assert (whole.inputs, whole.message) == (("0", "1", "2", "3", "4", "5"), "hi")


def test_answers():
    form = ChatFormat()
    assert form.parse_answer(TaskType.CODE_O, "so\n```output\n[1, 2]\n```") == "[1, 2]"
    assert form.parse_answer(TaskType.CODE_I, "```input\n1, 'a'\n```") == "1, 'a'"
    assert form.parse_answer(TaskType.CODE_F, f"```Python\n{PROGRAM}\n```") == PROGRAM
    assert form.parse_answer(TaskType.CODE_O, "42") is None


def test_references_are_shown():
    prompt = ChatFormat().propose_prompt(TaskType.CODE_O, [TASKS[TaskType.CODE_O]])
    assert PROGRAM in prompt
