import pytest

from azr_population.domains.code.formats import FORMATS
from azr_population.domains.code.short_format import ShortFormat
from azr_population.domains.code.task import Task, TaskType, reference_answer

PROGRAM = "def f(a, b):\n    return a + [b]"
INPUTS = tuple(f"[{i}], {i}" for i in range(6))
OUTPUTS = tuple(f"[{i}, {i}]" for i in range(6))
TASKS = {
    TaskType.CODE_O: Task(TaskType.CODE_O, PROGRAM, INPUTS[:1], OUTPUTS[:1]),
    TaskType.CODE_I: Task(TaskType.CODE_I, PROGRAM, INPUTS[:1], OUTPUTS[:1]),
    TaskType.CODE_F: Task(TaskType.CODE_F, PROGRAM, INPUTS, OUTPUTS),
}


@pytest.mark.parametrize("name", [entry.name for entry in FORMATS])
@pytest.mark.parametrize("type", TaskType)
def test_what_a_format_writes_it_reads_back(name, type):
    form, task = FORMATS.find(name).function(), TASKS[type]
    proposal = form.parse_proposal(type, form.write_proposal(task))
    assert (proposal.program, proposal.inputs) == (task.program, task.inputs)
    assert form.parse_answer(type, form.write_answer(task)) == reference_answer(task)


def test_messages_are_written_and_shown():
    told = Task(TaskType.CODE_F, PROGRAM, INPUTS, OUTPUTS, message="appends")
    form = ShortFormat()
    assert form.parse_proposal(told.type, form.write_proposal(told)).message == "appends"
    assert form.solve_prompt(told).endswith("appends")


@pytest.mark.parametrize("type", TaskType)
def test_prompts_are_a_few_words_that_hide_what_is_asked(type):
    task, form = TASKS[type], ShortFormat()
    assert len(form.propose_prompt(type)) < 90
    prompt = form.solve_prompt(task)
    assert len(prompt.replace(PROGRAM, "")) < 120
    assert (PROGRAM in prompt) == (type != TaskType.CODE_F)
    assert ("[0], 0" in prompt) == (type != TaskType.CODE_I)
    assert ("[0, 0]" in prompt) == (type != TaskType.CODE_O)
    if type == TaskType.CODE_F:
        assert "[2, 2]" in prompt and "[3]" not in prompt


def test_questions_about_one_program_begin_alike():
    one, other = (Task(TaskType.CODE_O, PROGRAM, (text,), ("[]",)) for text in INPUTS[:2])
    first, second = map(ShortFormat().solve_prompt, (one, other))
    assert first.split("[0]")[0] == second.split("[1]")[0] and PROGRAM in first.split("[0]")[0]
