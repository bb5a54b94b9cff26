"""`azr-population play`: a person answers, then the members' attempts step by step."""

import io
import json

import pytest
from completion_lines import line
from refusals import refused

from azr_population.cli import main

PROGRAM = "def f(x):\n    a = x[::-1]\n    b = [9 - d for d in a]\n    return b"
PROMPT = f"<SO>{PROGRAM}<in>[1, 2, 3]<out>"
TASK = {
    **{"step": 3, "type": "code_o", "teacher": "teacher_0", "student": "student_0"},
    **{"program": PROGRAM, "inputs": ["[1, 2, 3]"], "outputs": ["[6, 7, 8]"]},
    "solved": [True, False],
}


@pytest.fixture
def played(write, monkeypatch, capsys):
    """What the game prints to somebody who types these lines."""
    right = line(
        3, "solved", "solved", prompt=PROMPT, completion="a=[3, 2, 1]\nb=[6, 7, 8]\n[6, 7, 8]"
    )
    wrong = line(
        3, "failed", "wrong", prompt=PROMPT, completion="a=[3, 2, 0]\nb=[6, 7, 9]\n[6, 7, 9]"
    )

    def play(text, *options, cut="", verdict="failed", reason="wrong"):
        short = [line(3, verdict, reason, prompt=PROMPT, completion=cut)] if cut else []
        run = write(right, wrong, *short)
        (run / "tasks.jsonl").write_text(json.dumps(TASK) + "\n")
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main(["play", str(run), *options]) == 0
        return capsys.readouterr().out

    return play


def test_a_right_answer_is_right_however_it_is_spaced(played):
    text = played("[6,7,8]\n")
    assert "you   ✓ [6,7,8]" in text
    assert "you solved 1 of 1; the students 1 of 2" in text


def test_the_games_order_and_what_is_counted(write, monkeypatch, capsys):
    solved = {1: [True, False], 5: [True, False], 9: [True, True]}
    run = write(*(line(step, "solved", "solved", prompt=PROMPT) for step in solved))
    tasks = ({**TASK, "step": step, "solved": of_task} for step, of_task in solved.items())
    (run / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))

    def play(text, *options):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main(["play", str(run), *options]) == 0
        return capsys.readouterr().out

    shown = play("\n[6, 7, 8]\nq\n")
    order = [int(text.split()[1][:-1]) for text in shown.splitlines() if text.startswith("step ")]
    assert order == [5, 1, 9]  # those that some solved and others did not first, the late before
    assert "you solved 1 of 1; the students 1 of 2 attempts" in shown  # not of the skipped one
    assert "task 1 of 1" in play("\n", "--tasks", "1")


def test_an_attempt_belongs_to_the_task_that_its_prompt_shows(write, monkeypatch, capsys):
    program = "def f(x):\n    return x + 1"
    short, long = ({**TASK, "program": program, "inputs": [x], "outputs": [y]}
                   for x, y in (("1", "2"), ("12", "13")))  # fmt: skip
    pairs = {"inputs": ["1", "2"], "outputs": ["2", "3"]}
    inverse = {**TASK, "step": 2, "type": "code_i", "program": program, **pairs}
    induced = {**inverse, "step": 1, "type": "code_f"}
    run = write(
        line(1, "solved", "solved", prompt="<SF><in>1<out>2<code>", type="code_f"),
        line(2, "solved", "solved", prompt=f"<SI>{program}<out>2<in>", type="code_i"),
        line(3, "solved", "solved", prompt=f"<SO>{program}<in>12<out>"),
    )
    tasks = "".join(json.dumps(task) + "\n" for task in (induced, inverse, short, long))
    (run / "tasks.jsonl").write_text(tasks)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"13\n1\n{program!r}\n"))
    assert main(["play", str(run)]) == 0
    text = capsys.readouterr().out
    assert [f"task {n} of 3" in text for n in (1, 2, 3)] == [True] * 3
    assert "you   ✓ 13" in text and "you   ✓ 1\n" in text


def test_a_run_inside_azr_is_played(write, monkeypatch, capsys):
    run = write()
    monkeypatch.setattr("sys.stdin", io.StringIO("[6, 7, 8]\n"))
    settings = "{batch_size: null, student_lr: null}"
    (run / "config.yaml").write_text(f"actor_rollout_ref: {{}}\npopulation: {settings}\n")
    (run / "tasks.jsonl").write_text(json.dumps(TASK) + "\n")
    stored = line(3, "solved", "solved", prompt=PROMPT), line(3, "solved", "solved", prompt=None)
    (run / "completions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in stored))
    assert main(["play", str(run)]) == 0 and "you solved 1 of 1" in capsys.readouterr().out


def test_the_first_wrong_step_of_an_attempt_is_marked(played):
    lines = [text.strip() for text in played("[0]\n").splitlines()]
    assert "you   ✗ [0]" in lines
    assert lines.count("✓ a=[3, 2, 1]") == 1 and "✗ a=[3, 2, 0]   (is [3, 2, 1])" in lines
    # 9 - 0 is 9: what follows a wrong value may be computed rightly.
    assert "✓ b=[6, 7, 8]" in lines and "b=[6, 7, 9]" in lines and "✗ [6, 7, 9]" in lines
    # The answer is not shown before the person has answered.
    assert not any("[6, 7, 8]" in text for text in lines[: lines.index("you   ✗ [0]")])


def test_an_attempt_that_stops_before_its_answer(played):
    lines = [text.strip() for text in played("[0]\n", cut="a=[3, 2, 1]").splitlines()]
    assert lines.count("✓ a=[3, 2, 1]") == 2 and "✗ (no answer)" in lines


def test_an_answer_may_look_like_a_step(played):
    text = played("[0]\n", cut="x = 5", verdict="solved", reason="solved")
    assert "✓ x = 5" in text and "(no answer)" not in text


def test_an_empty_line_skips_and_q_ends(played):
    skipped = played("\n")
    assert "right: [6, 7, 8]" in skipped and "you " not in skipped
    assert "right: " not in played("q\n")


def test_the_end_of_the_input_ends_the_game(played):
    text = played("")
    assert "your answer (Enter skips, q ends): " in text and "you solved" not in text


def test_a_run_without_stored_attempts(write, capsys):
    assert "run.log_completions=16" in refused(capsys, "play", write(line(1)))
