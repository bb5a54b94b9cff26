import json
import os
from pathlib import Path

import pytest
from refusals import refuses

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.rules import refuse, task_or_reason
from azr_population.domains.code.source import NOT_FINITE
from azr_population.domains.code.task_types import ParsedProposal, Task, TaskType

RULES = TaskConfig(max_output_chars=50)


def proposal(program, *inputs, type=TaskType.CODE_O):
    return ParsedProposal(type, program, inputs)


def verdict(program, inputs, outputs, type=TaskType.CODE_O, rules=RULES):
    return task_or_reason(proposal(program, *inputs, type=type), outputs, rules)


def refused(*parts, **options):
    return refuse(proposal(*parts, **options), RULES)


@pytest.mark.parametrize(
    ("program", "inputs", "outputs", "rule"),
    [
        ("def f(n):\n    return n > 3", ["5"], ("True",), "boolean"),
        ("def f(n):\n    n.sort()", ["[1]"], ("None",), "boolean"),
        ("def f(n):\n    return 7", ["5"], ("7",), "constant"),
        ("def f(n):\n    return n", ["5"], ("5",), "identity"),
        ("def f(a, b):\n    return b", ["1, 'x'"], ("'x'",), "identity"),
        ("def f(a):\n    return a", ["[1,2]"], ("[1, 2]",), "identity"),
        ("def f(n):\n    return n * 2", ["5"], ("9" * 60,), "output_too_long"),
    ],
)
def test_guessable_answers_are_refused_by_name(program, inputs, outputs, rule):
    assert verdict(program, inputs, outputs) == rule


def test_a_sound_proposal_becomes_a_task_and_rules_can_be_switched_off():
    task = verdict("def f(n):\n    return n + 1", ["5"], ("6",))
    assert (task.inputs, task.outputs) == (("5",), ("6",))
    rules = TaskConfig(reject=[])
    assert isinstance(verdict("def f(n):\n    return n > 3", ["5"], ("True",), rules=rules), Task)


def test_code_f_with_equal_outputs_is_constant_and_one_identity_is_not():
    inputs = ["1", "2", "3"]
    program = "def f(n):\n    return abs(n)"
    assert verdict(program, inputs, ("4", "4", "4"), type=TaskType.CODE_F) == "constant"
    assert isinstance(verdict(program, inputs, ("1", "2", "4"), type=TaskType.CODE_F), Task)
    assert verdict(program, inputs, ("1", "2", "3"), type=TaskType.CODE_F) == "identity"


def test_refused_unexecuted(referee):
    program = "def f(n): ..."
    assert refused(program, "1", "1", "2", "3", type=TaskType.CODE_F) == "too_few_inputs"
    assert refused(program, "1") == refused(program, "1e99", type=TaskType.CODE_I) == ""
    rules = TaskConfig(max_program_chars=10)
    assert Code().judge([proposal("x" * 11, "1")], referee, rules) == ["program_too_long"]


def test_an_input_with_an_infinite_number_is_no_answer_and_no_task(referee):
    program = "def f(x):\n    return x > 10 ** 300"
    assert refused(program, "1e999", type=TaskType.CODE_I) == NOT_FINITE
    task = Task(TaskType.CODE_I, program, ("1e301",), ("True",))
    answers = ("1e999", "1e301", "[-1e999]", "1e999 - 1e999", "0", "float('nan')")
    (verdicts,) = Code().grade([(task, answers)], referee)
    assert [verdict.reason for verdict in verdicts] == [
        *(NOT_FINITE, "solved", NOT_FINITE, NOT_FINITE, "wrong", "not_literal")
    ]


PROGRAM = "def f(a):\n    return a[2:] + [1, 3]"
HELD_OUT = Code().held_out([PROGRAM, "def f(s):\n    return s.upper()"])


def test_copies_are_told_however_they_are_laid_out():
    assert HELD_OUT.is_copy(PROGRAM)
    assert HELD_OUT.is_copy("def f( a ):  # mine\n\n  return (a[2:]+[1,3])\n")
    assert not HELD_OUT.is_copy("def f(a):\n    return a[2:] + [1, 4]")


def test_near_copies_differ_in_constants_only():
    assert HELD_OUT.is_near_copy("def f(a):\n    return a[7:] + [0, 9]")
    assert HELD_OUT.is_near_copy("def f(a):\n    return a['x':] + [None, 2.5]")
    assert not HELD_OUT.is_near_copy("def f(a):\n    return a[2:] + [1]")
    assert not HELD_OUT.is_near_copy("def f(b):\n    return b[2:] + [1, 3]")


IO = {"snippet": "def f(a):\n    return a", "input": "1", "output": "1", "imports": []}
FUNCTION = {"snippet": "def f(a):\n    return a", "inputs": ["1", "2"], "outputs": ["1", "2"]}


def write(path, *rows):
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_both_kinds_of_line(tmp_path):
    proposals = Code().read_seeds(write(tmp_path / "seed.jsonl", IO, "", FUNCTION))
    assert [str(p.type) for p in proposals] == ["code_o", "code_i", "code_f"]
    assert proposals[2].inputs == ("1", "2")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "é"])
def test_only_line_feeds_end_a_line_of_a_seed_file(tmp_path, encoding, end, sign):
    row = json.dumps({**IO, "snippet": f"def f(a):\n    return a + '{sign}'"}, ensure_ascii=False)
    (tmp_path / "seed.jsonl").write_bytes(f"{row}{end}{row}".encode(encoding))
    proposals = Code().read_seeds(tmp_path / "seed.jsonl")
    assert len(proposals) == 4 and all(sign in proposal.program for proposal in proposals)


@pytest.mark.parametrize(
    ("line", "about"),
    [
        ('{"snippet": "\\ud800", "input": "1"}', "line 2"),
        ('{"snippet": "f", "input": ' + "[" * 100_000, "line 2"),
        ('{"snippet": "f", "imports": [' + "9" * 5_000, "line 2"),
        ("{broken", "line 2"),
        ("[1]", "line 2"),
        ({"input": "1"}, "snippet"),
        ({"snippet": "x"}, "input"),
        ({"snippet": "x", "input": 5}, "input"),
        ({**FUNCTION, "message": None}, "message"),
        ({**FUNCTION, "message": 5}, "message"),
        ({**IO, "imports": 5}, "imports"),
        ({**IO, "imports": "import re"}, "imports"),
        ({"snippet": "x", "inputs": [5]}, "inputs"),
    ],
)
def test_a_broken_line_is_named(tmp_path, line, about):
    with refuses(about):
        Code().read_seeds(write(tmp_path / "seed.jsonl", IO, line))


@pytest.mark.azr
def test_azr_seed_files_are_read_whole():
    data = Path(os.environ["AZR_HOME"]) / "data"
    pairs = Code().read_seeds(data / "7b_coder_seed_io.jsonl")
    functions = Code().read_seeds(data / "7b_coder_code_f_seed_io.jsonl")
    assert len(pairs) == 512 and len(functions) == 256
    assert all(proposal.type == TaskType.CODE_F for proposal in functions)
