"""A grader that is broken in one way or another gets as far as no completion."""

from dataclasses import replace

import needs
import pytest
from made_up_problems import CONTEST_ROWS, HUMANEVAL_ROWS, write_jsonl
from refusals import refuses

from azr_population.eval.benchmark import contests, functions, mathematics, sandbox
from azr_population.eval.benchmark.functions import FunctionProblem
from azr_population.eval.benchmark.mathematics import MathProblem
from azr_population.eval.benchmark.problem import VerdictLost
from azr_population.referee import Reason
from azr_population.referee.jobs import CallOutcome

tasks = needs.module("azr_population.eval.benchmark.tasks", "-e '.[eval]'")
FUNCTION = FunctionProblem("own/f", "", "f", "def f(x):\n    return x + 1\n", [[1], [2]], [[5]])


@pytest.fixture
def data(tmp_path):
    write_jsonl(tmp_path / "livecodebench/test.jsonl", CONTEST_ROWS)
    write_jsonl(tmp_path / "HumanEvalPlus.jsonl", HUMANEVAL_ROWS)
    write_jsonl(tmp_path / "gsm8k.jsonl", [{"question": "1+1?", "answer": "#### 2"}])
    return str(tmp_path)


@pytest.mark.parametrize("name", ["gsm8k", "humaneval_plus", "livecodebench"])
def test_a_grader_that_works_is_silent(data, name):
    tasks.self_test(name, data)


@pytest.mark.parametrize("verdict", [True, False])
@pytest.mark.parametrize(
    ("name", "module", "function"),
    [
        ("gsm8k", mathematics, "read_within_limits"),
        ("humaneval_plus", functions, "_is_right"),
        ("livecodebench", contests, "_is_right"),
    ],
)
def test_a_grader_that_says_the_same_of_all_is_refused(
    data, monkeypatch, name, module, function, verdict
):
    def always(*arguments):
        return [verdict] * len(arguments[1]) if function == "read_within_limits" else verdict

    monkeypatch.setattr(module, function, always)
    with refuses("grader"):
        tasks.self_test(name, data)


def test_a_fault_of_ours_is_not_a_verdict(monkeypatch):
    def at_fault(*arguments):
        raise AttributeError("no such rule")

    monkeypatch.setattr(functions, "_both", at_fault)
    with pytest.raises(AttributeError):
        FunctionProblem.judge([(FUNCTION, "def f(x):\n    return 1.5\n")])


def test_a_program_whose_process_is_lost_has_no_verdict(monkeypatch):
    read, lost = sandbox._read, CallOutcome(Reason.LOST)
    program, text = FUNCTION.canonical, f"```python\n{FUNCTION.canonical}\n```"
    for asked in (replace(FUNCTION), FUNCTION):  # its canonical solution is lost, or the program
        with monkeypatch.context() as patch:
            patch.setattr(sandbox, "_read", lambda outcome: read(lost))
            with pytest.raises(VerdictLost) as held:
                tasks.grade([(asked, text)])
        # The error is still held, and so are its frames.
        assert FunctionProblem.judge([(FUNCTION, program)])[0].passed and held


GOLDS = [
    ("18", "18", True), ("18", "17", False), (r"\frac{1}{2}", "0.5", True),
    (r"\frac{1}{2}", r"\frac{2}{4}", True), (r"2\sqrt{3}", r"3\sqrt{2}", False),
    ("(1,2)", "(2,1)", False), (r"\{1,2\}", r"\{2,1\}", True), ("70000", "70,000", True),
    (r"\pi", "3", False), ("x", "X", True),
    # As AZR's grader has it: half is not read as a number.
    (r"\frac{1}{2}", "½", False), ("5", "", False),
]  # fmt: skip


def test_mathematics_is_judged_as_azr_s_grader_does():
    verdicts = MathProblem.judge([(MathProblem("p", "", gold), text) for gold, text, _ in GOLDS])
    assert [v.passed for v in verdicts] == [right for _, _, right in GOLDS]
    assert verdicts[-1].reason == "no answer"


HOSTILE = ["9" * 3000 + "!", "9^{9^{9^{9^9}}}", "(" * 1500, r"\frac{" * 400, "1+" * 1900 + "1"]


@pytest.mark.slow
def test_a_hostile_formula_costs_its_own_time_only(monkeypatch):
    problem = MathProblem("p", "q", "5")
    monkeypatch.setattr(mathematics, "READING_SECONDS", 2.0)
    verdicts = MathProblem.judge([(problem, text) for text in [*HOSTILE, "5", "6"]])
    assert [v.passed for v in verdicts] == [False] * len(HOSTILE) + [True, False]
