from azr_population.domains.code.complexity import SPACE
from azr_population.domains.code.formats import MARKS, ChatFormat, NanoFormat
from azr_population.domains.code.task_types import Task, TaskType
from azr_population.domains.prompt_segments import Segment, marks_of, split_segments, user_turn


def test_what_does_not_parse_has_no_place():
    for task in ({"program": "def sat(:", "inputs": ["1"]}, {"program": 3}, {}):
        assert SPACE.point(task) is None
    assert SPACE.point({"program": "def sat(x): return x > 1"}) is not None


TASK = Task(TaskType.CODE_O, "def f(a):\n    return a + 1", ("1",), ("2",))


def test_a_nano_prompt_is_code_between_marks():
    prompt = NanoFormat().solve_prompt(TASK)
    assert marks_of(prompt, MARKS) == MARKS and not marks_of("What is <in>?", MARKS)
    assert split_segments(prompt, MARKS) == [
        Segment("<SO>", TASK.program, True),
        Segment("<in>", "1", True),
        Segment("<out>", "", True),
    ]
    assert split_segments(f"{TASK.program}<in>1", MARKS)[0] == Segment("", TASK.program, True)


def test_the_fenced_blocks_of_a_chat_are_code():
    words, program, _, end = split_segments(ChatFormat().solve_prompt(TASK), ())
    assert not words.code and program == Segment("```python", f"{TASK.program}\n", True)
    assert "Think step by step" in end.text and not end.code


def test_a_fence_that_is_not_closed_reaches_to_the_end():
    assert split_segments("so\n```python\ndef f", ())[1] == Segment("```python", "def f", True)
    assert split_segments("", ()) == split_segments("  \n", ()) == []


def test_the_users_turn_is_what_was_asked():
    chat = "<|im_start|>system\nBe good.<|im_end|>\n<|im_start|>user\nAdd.\nUp<|im_end|>\n"
    assert user_turn(f"{chat}<|im_start|>assistant\n") == "Add.\nUp"
    assert user_turn("<PO>") == "<PO>"
