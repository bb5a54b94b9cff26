"""The pipe: one verdict per line, in order, whatever the lines are."""

# ruff: noqa: E501

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from azr_population.cli import main
from azr_population.config.schema import RefereeConfig
from azr_population.referee.limits import BOUNDS
from azr_population.referee.pipe import MAX_LINE_BYTES, judge_lines

COMMAND = [sys.executable, "-m", "azr_population.cli", "referee"]


def judge(referee, *lines):
    source = io.BytesIO(
        b"".join(
            line if type(line) is bytes else json.dumps(line).encode() + b"\n" for line in lines
        )
    )
    sink = io.StringIO()
    judge_lines(referee, source, sink)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


def test_each_type_of_task(referee):
    program = "def f(x): return x + 1"
    assert judge(
        referee,
        {"id": 1, "type": "code_o", "program": program, "input": "3", "answers": ["4", "5"], "imports": []},
        {"id": "b", "type": "code_i", "program": program, "input": "3", "answers": ["3", "4", "x"]},
        {"id": 3, "type": "code_f", "inputs": ["1", "2"], "outputs": ["2", "3"], "answers": [program, "def f(x): return 2"]},
        {"id": 4, "type": "code_f", "inputs": ["1", "2"], "program": program, "answers": []},
        {"id": 5, "type": "code_o", "program": "def f(x):\n while 1: pass", "input": "3", "answers": ["4"]},
        {"id": 6, "type": "code_o", "program": "def f(x): return math.pi > x", "input": "3", "answers": ["True"], "imports": ["import math"]},
    ) == [
        {"id": 1, "valid": True, "output": "4", "solved": [True, False], "reasons": ["solved", "wrong"]},
        {"id": "b", "valid": True, "output": "4", "solved": [True, False, False], "reasons": ["solved", "wrong", "not_literal"]},
        {"id": 3, "valid": True, "outputs": ["2", "3"], "solved": [True, False], "reasons": ["solved", "wrong"], "accuracy": [1.0, 0.5]},
        {"id": 4, "valid": True, "outputs": ["2", "3"], "solved": [], "reasons": [], "accuracy": []},
        {"id": 5, "valid": False, "reason": "timeout"},
        {"id": 6, "valid": True, "output": "True", "solved": [True], "reasons": ["solved"]},
    ]  # fmt: skip


GOOD = {"id": 9, "type": "code_o", "program": "def f(x): return x", "input": "1", "answers": ["1"]}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"not json\n", "Expecting value"),
        (b"[" + b"1," * MAX_LINE_BYTES + b"1]\n", "bytes"),
        ({**GOOD, "type": "code_i", "answers": ["1"] * 5000}, "4096 executions"),
        (
            {
                "id": 9,
                "type": "code_f",
                "inputs": ["1"] * 70,
                "outputs": ["1"] * 70,
                "answers": ["f=abs"] * 60,
            },
            "4096 executions",
        ),
        (b'{"id": 1\n', "delimiter"),
        (b"\xff\xfe\n", "codec"),
        (b"[" * 100_000 + b"\n", "recursion"),
        (b"[1]\n", "not a JSON object"),
        (b'{"id": 1, "n": ' + b"9" * 5000 + b"}\n", ""),
        ({**GOOD, "type": "code_x"}, "'code_x'"),
        ({**GOOD, "type": ["code_o"]}, "type"),
        ({**GOOD, "program": 3}, "program"),
        ({**GOOD, "input": None}, "input"),
        ({**GOOD, "answers": "1"}, "answers"),
        ({**GOOD, "answers": [1]}, "answers"),
        ({**GOOD, "imports": "import os"}, "imports"),
        ({"id": 9, "type": "code_f", "program": ""}, "inputs"),
        ({"id": 9, "type": "code_f", "inputs": ["1"], "outputs": []}, "1 inputs but 0"),
        ({"id": 9, "type": "code_f", "inputs": [], "outputs": []}, "inputs"),
        ({**GOOD, "attempts": ["1"]}, "attempts"),
        ({**GOOD, "inputs": ["1"]}, "inputs"),
        (b'{"id": NaN}\n', "NaN is not JSON"),
        (b'{"id": -Infinity}\n', "-Infinity is not JSON"),
        (b'{"id": 1e999}\n', "not JSON compliant"),
    ],
)
def test_a_malformed_line_is_named_and_the_rest_goes_on(referee, line, says):
    first, broken, last = judge(referee, GOOD, line, GOOD)
    assert first == last == {"id": 9, "valid": True, "output": "1", "solved": [True], "reasons": ["solved"]}  # fmt: skip
    assert (broken["valid"], broken["reason"], broken["line"]) == (False, "malformed", 2)
    assert broken["detail"].startswith("line 2: ") and says in broken["detail"]
    assert broken["id"] == (9 if type(line) is dict else None)


def test_blank_lines_and_a_missing_last_newline(referee):
    verdicts = judge(referee, b"\n", GOOD, b"  \n", json.dumps(GOOD).encode())
    assert [verdict["id"] for verdict in verdicts] == [9, 9]
    assert judge(referee) == []
    assert judge(referee, b"\n", b"x\n")[0]["line"] == 2
    assert judge(referee, b"\xef\xbb\xbf" + json.dumps(GOOD).encode())[0]["valid"]


def test_an_answer_that_python_s_reader_overflows_at_is_no_literal(referee):
    first, last = judge(referee, {**GOOD, "answers": ["9" * 400 + "+1j"]}, GOOD)
    assert first["reasons"] == ["not_literal"] and last["solved"] == [True]


def test_the_command_s_limit_of_processor_time_follows_its_timeout(monkeypatch):
    asked = []
    monkeypatch.setattr("azr_population.referee.pipe.judge_standard_input", asked.append)
    for typed in ((), ("--timeout", "60", "--workers", "1")):
        assert main(["referee", *typed]) == 0
    assert [(each.timeout, each.cpu_seconds) for each in asked] == [(2, 0.5), (60, 15)]


def test_many_lines_come_back_in_order(referee):
    lines = [{**GOOD, "id": n, "input": str(n), "answers": [str(n)]} for n in range(500)]
    verdicts = judge(referee, *lines)
    assert [verdict["id"] for verdict in verdicts] == list(range(500))
    assert all(verdict["solved"] == [True] for verdict in verdicts)


def test_a_partner_may_wait_for_each_verdict():
    process = subprocess.Popen(
        [*COMMAND, "--workers", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    page = (Path(__file__).parents[2] / "docs" / "python.md").read_text()
    for line in (re.search(r'^ +(\{"id": 1.*)', page, re.MULTILINE)[1], json.dumps(GOOD)):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        verdict = json.loads(process.stdout.readline())
        assert verdict["id"] == json.loads(line)["id"]
        assert (verdict["output"], verdict["solved"]) == (
            "4" if verdict["id"] == 1 else "1",
            [True],
        )
    process.stdin.close()
    assert process.wait() == 0
    process.stdout.close()


def test_a_reader_that_leaves_ends_the_pipe_quietly():
    with subprocess.Popen(
        [*COMMAND, "--workers", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:  # fmt: skip
        process.stdout.close()
        line = json.dumps({**GOOD, "answers": ["1"] * 2000}).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # it may have left before it has read them all
            process.stdin.write(line * 20)
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        assert b"Traceback" not in process.stderr.read()
        assert process.wait() == 141


@pytest.mark.parametrize(
    ("flags", "key"),
    [
        (["--timeout", "nan"], "timeout"),
        (["--workers", "5000"], "workers"),
    ],
)
def test_limits_must_be_limits(flags, key, capsys):
    assert main(["referee", *flags]) == 2
    assert f"referee.{key}=" in capsys.readouterr().err


def test_the_configuration_has_the_same_bounds():
    fields = RefereeConfig.model_fields
    for name, (least, most) in BOUNDS.items():
        if name in fields:
            bounds = {type(bound).__name__: bound for bound in fields[name].metadata}
            assert (bounds["Ge"].ge, bounds["Le"].le) == (least, most), name


def test_banned_says_what(referee):
    (verdict,) = judge(referee, {**GOOD, "program": "import os\ndef f(x): return x"})
    assert (verdict["reason"], "os" in verdict["detail"]) == ("banned", True)


CLI = f"exec {sys.executable} -m azr_population.cli referee --workers 1"


@pytest.mark.parametrize(
    ("redirection", "named"),
    [("0> /dev/null", "input"), ("<&-", "input"), (">&-", "output"), ("> /dev/full", "No space")],
)
def test_a_stream_that_does_not_work_is_one_line(redirection, named):
    done = subprocess.run(
        ["sh", "-c", f"{CLI} {redirection}"],
        input=json.dumps(GOOD).encode() + b"\n",
        capture_output=True,
    )
    assert done.returncode == 2
    assert done.stderr.decode().count("\n") == 1 and named in done.stderr.decode()


def test_verdicts_that_cannot_be_written_end_it_while_the_input_stays_open():
    with subprocess.Popen(
        ["sh", "-c", f"{CLI} > /dev/full"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        with contextlib.suppress(BrokenPipeError):  # it may have left before
            process.stdin.write(json.dumps(GOOD).encode() + b"\n")
            process.stdin.flush()
        assert process.stderr.read().decode().count("\n") == 1
        assert process.wait() == 2


MEMORY = """
import sys
from azr_population.cli import main
main(["referee", "--workers", "1"])
status = dict(line.split(":") for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) >> 10, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        b"x" * (1 << 28),
        (b"x" * (1 << 24) + b"\n") * 16,
        (b"[" + b"{}," * 690_000 + b"{}]\n") * 40,
        (json.dumps({**GOOD, "answers": ["1" * 1_000_000]}).encode() + b"\n") * 200,
    ],
    ids=["no end", "long lines", "deep memory", "long answers"],
)
def test_it_takes_less_than_200_megabytes_for_any_input(text):
    done = subprocess.run([sys.executable, "-c", MEMORY], input=text, capture_output=True)
    assert done.stdout.count(b"\n") == max(text.count(b"\n"), 1)
    assert int(done.stderr) < 200
