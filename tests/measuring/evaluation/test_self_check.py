"""Judges that are broken in one way or another: none gets as far as a completion."""

from __future__ import annotations

import sys

import needs
import pytest
from made_up_problems import CONTEST_ROWS, HUMANEVAL_ROWS, write_jsonl

from azr_population.cli import main
from azr_population.errors import UserError
from azr_population.measuring.evaluation.benchmark import chosen
from azr_population.measuring.evaluation.data import read
from azr_population.measuring.evaluation.grading import contests, evalplus_rules, functions, grade
from azr_population.measuring.evaluation.grading.grade import Graders
from azr_population.measuring.evaluation.grading.self_check import prove
from azr_population.measuring.evaluation.grading.verdict import Verdict
from azr_population.measuring.evaluation.problem import FunctionProblem, MathProblem

needs.module("math_verify", "-e '.[eval]'")
needs.module("pebble", "-e '.[eval]'")

MATHEMATICS = [MathProblem(f"own/{n}", "", gold) for n, gold in enumerate(("7", r"\frac12", "x"))]
FUNCTION = FunctionProblem("own/f", "", "f", "def f(x):\n    return x + 1\n", [[1], [2]], [[5]])


@pytest.fixture
def graders(references):
    with Graders(1, references) as made:
        yield made


@pytest.fixture
def contest(tmp_path):
    write_jsonl(tmp_path / "livecodebench/test.jsonl", CONTEST_ROWS)
    return read(chosen("livecodebench")[0], tmp_path).problems


@pytest.mark.parametrize("rule", ["tagged", "boxed_or_last_number"])
def test_a_mathematics_judge_that_works_is_silent(graders, rule):
    prove("Own", rule, MATHEMATICS, graders)


def test_judges_of_programs_that_work_are_silent(graders, contest):
    needs.module("evalplus", "-e '.[eval]'")
    prove("Own", "evalplus", [FUNCTION], graders)
    prove("Own", "last_python_block", contest, graders)
    prove("Own", "last_fence", contest, graders)


PASSES = Verdict(True, "passed", base_passed=True)
FAILS = Verdict(False, "wrong", base_passed=False)


@pytest.mark.parametrize(
    ("always", "said"),
    [
        (FAILS, r"Own: its judge fails own/f's own right answer \(wrong\), so no figure"),
        (PASSES, r"Own: its judge passes a wrong answer to own/f, so no figure"),
    ],
)
def test_a_function_judge_that_says_the_same_of_all_is_refused(graders, monkeypatch, always, said):
    needs.module("evalplus", "-e '.[eval]'")
    monkeypatch.setattr(functions, "_verdict", lambda *given: always)
    with pytest.raises(UserError, match=said):
        prove("Own", "evalplus", [FUNCTION], graders)


@pytest.mark.parametrize("answer", [True, False])
def test_a_contest_judge_that_says_the_same_of_all_is_refused(
    graders, contest, monkeypatch, answer
):
    monkeypatch.setattr(contests, "_same_lines", lambda *given: answer)
    with pytest.raises(UserError, match=r"its judge (passes a wrong answer to|fails) proof"):
        prove("Own", "last_python_block", contest, graders)


def test_a_mathematics_judge_that_fails_all_is_refused(graders, monkeypatch):
    monkeypatch.setattr(grade, "grade_answers", lambda asked, _: [FAILS for one in asked])
    with pytest.raises(UserError, match="fails own/0's own right answer"):
        prove("Own", "tagged", MATHEMATICS, graders)


def test_a_fault_of_ours_in_a_rule_is_no_verdict(graders, monkeypatch):
    needs.module("evalplus", "-e '.[eval]'")

    def at_fault(*given):
        raise AttributeError("no such rule")

    monkeypatch.setattr(evalplus_rules, "_both", at_fault)
    with pytest.raises(AttributeError, match="no such rule"):
        graders.functions.judge([(FUNCTION, "def f(x):\n    return 1.5\n")])


@pytest.mark.parametrize("lacking", ["MBPP_OUTPUT_SET_EQ_TASKS", "_poly"])
def test_an_evalplus_without_our_names_is_told(monkeypatch, lacking):
    special = needs.module("evalplus.eval._special_oracle", "-e '.[eval]'")
    monkeypatch.delattr(special, lacking)
    evalplus_rules._special.cache_clear()
    with pytest.raises(UserError, match=f"has no {lacking}: pip install 'evalplus>=0.3.1'"):
        evalplus_rules._special()


@pytest.mark.parametrize(
    ("benchmark", "rows", "file", "package"),
    [
        ("gsm8k", [{"question": "1+1?", "answer": "#### 2"}], "gsm8k/test.jsonl", "pebble"),
        ("gsm8k", [{"question": "1+1?", "answer": "#### 2"}], "gsm8k/test.jsonl", "math_verify"),
        ("humaneval_plus", HUMANEVAL_ROWS, "HumanEvalPlus.jsonl", "evalplus"),
    ],
)
def test_what_is_missing_for_judging_is_told_before_anything_is_drawn(
    tmp_path, capsys, monkeypatch, benchmark, rows, file, package
):
    from azr_population.bases.nano import nano_base_path

    write_jsonl(tmp_path / file, rows)
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    evalplus_rules._special.cache_clear()
    typed = ["evaluate", str(nano_base_path()), "--benchmarks", benchmark]
    typed += ["--data", str(tmp_path), "--records", str(tmp_path / "records")]
    assert main(typed) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "pip install" in line
    assert package.replace("_", "-") in line.replace("_", "-")
    assert not (tmp_path / "records").exists()
