"""The table of docs/azr_inside.md: where the referee's verdicts differ from AZR's, and where not."""

# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import needs
import pytest

from azr_population.referee import Question, Referee, RefereeSettings

pytestmark = pytest.mark.azr

INVALID = "invalid"
COUNT = "a = 1\ndef f(x): return len(globals())"
SAME = "def f(x, y=0): return x"


class Case(NamedTuple):
    """A task, an answer, and what the two say: INVALID, or whether the answer is right."""

    kind: str
    program: str
    input: str
    answer: str
    ours: bool | str
    azr: bool | str


CASES = {
    # As in AZR.
    "the name of the module": Case(
        "code_o", "def f(x): return __name__", "3", "'builtins'", True, True
    ),
    "a class's name": Case(
        "code_o", "class A: pass\ndef f(x): return str(A)", "3", '"<class \'A\'>"', True, True
    ),
    "2.0 for 2": Case("code_o", SAME, "2", "2.0", True, True),
    "a starred input of a task": Case("code_o", SAME, "*[3, 2]", "3", True, True),
    "a list many times in an input": Case(
        "code_o", "def f(x):\n    x[0].append(1)\n    return x", "[[]] * 2", "[[1], [1]]", True, True
    ),
    # Other than AZR. It finds the first two nondeterministic, and lets them pass with no output.
    "the number of globals": Case("code_o", COUNT, "3", "3", INVALID, False),
    "the names of globals": Case(
        "code_o", "def f(x): return sorted(globals())", "3", "['f']", INVALID, False
    ),
    "an expression as an output": Case("code_o", "def f(x): return x / 3", "1", "1/3", False, True),
    "True for 1": Case("code_o", SAME, "1", "True", False, True),
    "an output that is a frozenset": Case(
        "code_o", "def f(x): return frozenset(x)", "[]", "frozenset()", INVALID, True
    ),
    "an infinite output": Case("code_o", SAME, "float('inf')", "float('inf')", INVALID, False),
    "a starred input as an answer": Case("code_i", SAME, "3, 2", "*[3, 2]", False, True),
    "an expression as an input": Case("code_i", SAME, "3", "1 + 2", False, True),
    "a frozenset in the input of a task": Case(
        "code_i", "def f(x): return len(x)", "frozenset()", "frozenset()", INVALID, True
    ),
    "infinity in the input of a task": Case(
        "code_i", "def f(x): return x > 3", "float('inf')", "float('inf')", INVALID, True
    ),
    "one list several times in an input, judged": Case(
        "code_i", "def f(x): return x[0] is x[1]", "[[]] * 2", "[[], []]", True, False
    ),
    "a set in another order": Case("code_i", "def f(x): return list(x)", "{8, 0}", "{0, 8}", True, False),
    "one bit of the clock": Case(
        "code_o", "import datetime\ndef f(x): return datetime.date.today().year > 1", "3", "True",
        True, True,
    ),
    "the year": Case(
        "code_o", "import datetime\ndef f(x): return datetime.date.today().year > 2030", "3", "False",
        INVALID, True,
    ),
    "a module that is not on the list": Case(
        "code_o", "import platform\ndef f(x): return x", "3", "3", INVALID, True
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def azr():
    executor = needs.from_azr(needs.AZR_EXECUTOR).PythonExecutor(timeout_length=30)
    yield executor
    executor.cleanup()


@pytest.mark.parametrize("name", CASES)
def test_azr_says(azr, name):
    case = CASES[name]
    valid, gold = azr.check_all(case.program, case.input)
    if not valid:
        assert case.azr == INVALID
        return
    ask = azr.eval_input_prediction if case.kind == "code_i" else azr.eval_output_prediction
    assert bool(ask(case.program, gold, case.answer)) == case.azr


def test_the_referee_says():
    questions = [Question(c.kind, c.program, (c.input,), (), (c.answer,)) for c in CASES.values()]
    with Referee(RefereeSettings(workers=1, timeout=30.0)) as referee:
        judged = referee.judge(questions)
    verdicts = [j.grades[0].solved if j.execution.valid else INVALID for j in judged]
    assert dict(zip(CASES, verdicts, strict=True)) == {
        name: case.ours for name, case in CASES.items()
    }


def test_each_difference_is_in_the_table():
    page = (Path(__file__).parents[2] / "docs" / "azr_inside.md").read_text()
    table = page.partition("## Where verdicts differ")[2].partition("\n## ")[0]
    for name, case in CASES.items():
        assert (f"| {name} |" in table) == (case.ours != case.azr), name
