"""`azr-population show` on made-up completions."""

import json
import re
import shlex
import subprocess
import sys

import pytest
from completion_lines import line
from refusals import refused

from azr_population.cli import main

COMMAND = [sys.executable, "-m", "azr_population.cli"]


def shown(capsys, *arguments):
    assert main(["show", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_verdict_and_reason_come_first_then_who_and_what(write, capsys):
    text = shown(capsys, write(line(3)))
    first, second, *rest = text.splitlines()
    assert first.startswith("refused, boolean: ")
    for shown_value in ("step 3", "teacher_0", "code_o", "student_0", "-0.50", "9 ", "-0.25"):
        assert shown_value in second
    assert rest == [
        *("prompt", "    <PO> ", "completion"),
        *("    def f(a):", "        return a > 1", "    <in> 3", ""),
    ]


def test_a_chat_is_folded_to_what_was_asked(write, capsys):
    program = "\n".join(f"    b = {i}" for i in range(40))
    prompt = (
        "<|im_start|>system\nYou are helpful.<|im_end|>\n<|im_start|>user\n"
        f"```python\ndef f(a):\n{program}\n```\nWhat is f(3)?<|im_end|>\n<|im_start|>assistant\n"
    )
    run = write(line(1, "solved", "solved", prompt=prompt, completion="```output\n4\n```"))
    text = shown(capsys, run)
    assert "helpful" not in text and "im_end" not in text and "What is f(3)?" in text
    assert "26 lines; --full" in text and len(text.splitlines()) < 32
    complete = shown(capsys, run, "--full")
    assert "helpful" in complete and "b = 20" in complete


def test_filters_and_limit(write, capsys):
    run = write(
        line(1, member="teacher_1"),
        line(1, "solved", "solved"),
        line(2, type="code_i"),
        line(2, "valid", "ok"),
        line(2, "failed", "wrong"),
    )
    rows = [json.loads(text) for text in shown(capsys, run, "--json").splitlines()]
    assert len(rows) == 5 and rows[0] == line(1, member="teacher_1")
    for item, places in (
        (["--verdict", "refused"], [0, 2]),
        (["--verdict", "solved", "--verdict", "wrong"], [1, 4]),
        (["--step", 2, "--verdict", "valid"], [3]),
        (["--type", "code_i"], [2]),
        (["--limit", 2], [3, 4]),
    ):
        result = shown(capsys, run, "--json", *item).splitlines()
        assert [json.loads(text) for text in result] == [rows[i] for i in places], item
    result = shown(capsys, f"{run}/teacher_1", "--json").splitlines()
    assert [json.loads(text) for text in result] == rows[:1]
    assert "1 of 2; --limit 0" in shown(capsys, run, "--verdict", "refused", "--limit", 1)
    assert main(["show", str(run), "--verdict", "solved", "--step", "2"]) == 0
    assert capsys.readouterr().out == ""


def test_what_is_not_there_is_told_with_the_way_out(write, capsys, tmp_path):
    run = write(line(2), line(4))
    message = refused(capsys, "show", f"{run}/techer_0")
    assert "techer_0" in message and "teacher_0" in message
    assert "--step 3 " in refused(capsys, "show", run, "--step", 3)
    assert "--limit" in refused(capsys, "show", run, "--limit", -1)
    assert "--type code_x " in refused(capsys, "show", run, "--type", "code_x")
    (run / "completions.jsonl").unlink()
    message = refused(capsys, "show", run)
    assert "completions.jsonl" in message
    assert f"azr-population resume {run} run.log_completions=16" in message
    assert "config.yaml" in refused(capsys, "show", tmp_path.with_name("nowhere"))


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\b\u202edeath\x00\ud800 ok"


@pytest.mark.parametrize("key", ["completion", "prompt", "member", "reason", "type", "verdict"])
def test_a_strangers_words_do_not_reach_the_terminal(write, capsys, key, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    run = write(line(1, **{key: HOSTILE}))
    # Colours are ours, and move nothing.
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown(capsys, run))
    assert "\\x1b]0;owned\\x07" in text and "\\u202edeath" in text and "\\ud800" in text
    assert not set("\x1b\x07\x08\x9b\x00\r\u202e") & set(text)
    assert "\x1b" not in shown(capsys, run, "--json")


@pytest.mark.parametrize(
    "change",
    [
        {"reward": "<b>", "tokens": None, "log_prob": [1]},
        {"prompt": None, "completion": None},
        {"verdict": None, "reason": None, "member": None, "opponent": {"x": 1}},
        {"solve_rate": "much", "finished": "no", "generation": 10**9},
        {"completion": "```python\nno end"},
        {"completion": ""},
    ],
)
def test_lines_of_another_shape_hurt_nobody(write, capsys, change):
    assert "step 1: " in shown(capsys, write(line(1, **change)))


def test_it_goes_through_pipes(write):
    run = write(*[line(1)] * 3000)
    command = shlex.join([*COMMAND, "show", str(run), "--limit", "0"])
    for more in ("", " --json"):
        script = f"{command}{more} | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        assert done.returncode == 141 and done.stderr == ""
        assert done.stdout.count("\n") == 1
