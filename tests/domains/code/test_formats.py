import json

import pytest
from refusals import refuses

from azr_population.bases.nano import nano_base_path
from azr_population.domains.code.formats import (
    FORMATS,
    WARMUP_LOG,
    ChatFormat,
    NanoFormat,
    base_format,
)
from azr_population.domains.code.task_types import Task, TaskType, reference_answer
from azr_population.engines.base_model import load_tokenizer

O, I, F = TaskType  # noqa: E741
PROGRAM = "def f(a, b):\n    return a + [b]"
INPUTS = tuple(f"[{i}], {i}" for i in range(6))
OUTPUTS = tuple(f"[{i}, {i}]" for i in range(6))
TASKS = {
    O: Task(O, PROGRAM, INPUTS[:1], OUTPUTS[:1]),
    I: Task(I, PROGRAM, INPUTS[:1], OUTPUTS[:1]),
    F: Task(F, PROGRAM, INPUTS, OUTPUTS, message="appends"),
}
NAMES = list(FORMATS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("type", TaskType)
def test_a_solve_prompt_shows_what_is_given_and_hides_what_is_asked(name, type):
    prompt = FORMATS.find(name)().solve_prompt(TASKS[type])
    assert (PROGRAM in prompt) == (type != F)
    assert ("[0], 0" in prompt) == (type != I)
    assert ("[0, 0]" in prompt) == (type != O)
    assert ("[2, 2]" in prompt) == (type == F) and "[3]" not in prompt
    assert ("appends" in prompt) == (type == F and name != "nano")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("type", TaskType)
def test_formats_read_what_they_write(name, type):
    form, task = FORMATS.find(name)(), TASKS[type]
    proposal = form.parse_proposal(type, form.write_proposal(task))
    assert (proposal.program, proposal.inputs) == (task.program, task.inputs)
    answer, gold = form.parse_answer(type, form.write_answer(task)), form.gold_answer(task)
    assert answer == reference_answer(task)
    assert gold is None or form.parse_answer(type, gold) == answer
    assert form.propose_prompt(type, [task])
    assert min(form.max_new_tokens(type, phase) for phase in ("solve", "propose")) > 0
    assert form.parse_proposal(type, "no block") is form.parse_answer(type, "") is None


def test_nano_prompts_are_marks():
    form = NanoFormat()
    assert [form.propose_prompt(type) for type in TaskType] == ["<PO>", "<PI>", "<PF>"]
    assert [form.solve_prompt(task) for task in TASKS.values()] == [
        f"<SO>{PROGRAM}<in>[0], 0<out>",
        f"<SI>{PROGRAM}<out>[0, 0]<in>",
        "<SF><in>[0], 0<out>[0, 0]<in>[1], 1<out>[1, 1]<in>[2], 2<out>[2, 2]<code>",
    ]
    assert form.parse_answer(O, " [1, 2]") == form.parse_answer(O, "k=3\n[1, 2]") == "[1, 2]"
    assert form.parse_answer(I, "1<out>2") is form.parse_answer(O, " ") is None


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
def test_malformed_nano_proposals_are_none(type, text):
    assert NanoFormat().parse_proposal(type, text) is None


DRAFT = "```python\ndraft\n```\n" + "".join(f"```input\n{i}\n```\n" for i in range(6))


@pytest.mark.parametrize("opened", ["<think>\n", ""])
def test_nothing_in_a_draft_is_a_part_of_a_proposal_or_an_answer(opened):
    form, final = ChatFormat(), ChatFormat().write_proposal(TASKS[F])
    parsed = form.parse_proposal(F, f"{opened}{DRAFT}</think>\n{final}")
    assert (parsed.program, parsed.inputs, parsed.message) == (PROGRAM, INPUTS, "appends")
    assert form.parse_proposal(F, f"{opened}{DRAFT}</think>\nDone.") is None
    assert form.parse_answer(I, f"{opened}{DRAFT}</think>\nIt is clear.") is None
    assert form.parse_answer(I, f"<think>\n{DRAFT}") is None
    assert form.parse_answer(I, DRAFT) == "5"


DOCSTRING = (
    'def f(x):\n    """Doubles.\n\n    ```\n    f(1) == 2\n    ```\n    """\n    return 2 * x'
)


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("```py\nx = 1\n```", "x = 1"),
        ("``` python3 title\r\nx = 1\r\n```\r\nDone", "x = 1"),
        ("   ```python\nx = 1\n   ```", "x = 1"),
        ("So: ```python\nx = 1```\nwith ```f``` in it.\n", "x = 1"),
        ("```python\nx = 1\n", "x = 1"),
        (f"```python\n{DOCSTRING}\n```\n```input\n1\n```", DOCSTRING),
        ("```pycon\nx = 1\n```", None),
    ],
)
def test_which_blocks_are_programs(text, program):
    assert ChatFormat().parse_answer(F, text) == program


def test_chat_proposals_are_the_last_blocks_and_code_f_needs_all_its_inputs():
    form = ChatFormat()
    program = f"first\n```python\nx\n```\nthen\n```Python\n{PROGRAM}\n```\n"
    parsed = form.parse_proposal(O, program + "```input\n1\n```")
    assert (parsed.program, parsed.inputs) == (PROGRAM, ("1",))
    inputs = [f"```input\n{i}\n```\n" for i in range(6)]
    assert form.parse_proposal(F, program + "".join(inputs[:5])) is None
    twice = form.parse_proposal(F, program + "".join([*inputs[:5], inputs[0]]))
    assert twice.inputs == ("0", "1", "2", "3", "4")
    seven = "".join([*inputs, "```input\n6\n```\n"])
    assert form.parse_proposal(F, program + seven).inputs == ("0", "1", "2", "3", "4", "5")
    assert form.parse_proposal(O, program + seven).inputs == ("6",)
    assert form.parse_answer(O, "so\n```output\n[1]\n```\n```output\n2\n```") == "2"
    assert form.parse_answer(O, "42") is None
    assert PROGRAM in form.propose_prompt(O, [TASKS[O]])


def letters(texts, add_special_tokens):
    """A tokenizer that knows no marks."""
    return {"input_ids": [list(map(ord, text)) for text in texts]}


def log(folder, content):
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / WARMUP_LOG).write_text(text)
    return folder


def test_the_warm_up_decides_on_a_bases_format_and_else_the_marks(tmp_path):
    assert base_format(tmp_path, letters) == "chat"
    assert base_format(nano_base_path(), load_tokenizer(nano_base_path())) == "nano"
    assert base_format(log(tmp_path, {"settings": {"format": "short"}}), letters) == "short"


@pytest.mark.parametrize("content", [{"settings": {"format": "azr"}}, {}, [], "{"])
def test_a_warm_up_in_an_unknown_format_is_refused(tmp_path, content):
    with refuses(WARMUP_LOG):
        base_format(log(tmp_path, content), letters)
