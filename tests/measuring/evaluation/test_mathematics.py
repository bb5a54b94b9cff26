from __future__ import annotations

import math_families
import needs
import pytest
from math_families import DIFFER, EQUAL
from math_pairs import EDGES, pairs

from azr_population.measuring.evaluation.grading.extraction import RULES
from azr_population.measuring.evaluation.grading.mathematics import (
    equal,
    equal_to_azr,
    grade_answers,
)
from azr_population.measuring.evaluation.grading.workers import Workers
from azr_population.measuring.evaluation.problem import MathProblem

needs.module("math_verify", "-e '.[eval]'")
needs.module("pebble", "-e '.[eval]'")


@pytest.mark.parametrize("edge", EDGES)
def test_every_edge(edge):
    wanted = pairs(edge)
    assert len(wanted) >= 100
    judged = [(gold, answer, bool(equal(gold, answer))) for gold, answer, _ in wanted]
    assert judged == wanted


def both_ways(families, family):
    made = math_families.pairs(families, family)
    return [*made, *((other, one) for one, other in made)]


def test_the_families_are_many():
    sizes = [sum(len(both_ways(each, name)) // 2 for name in each) for each in (DIFFER, EQUAL)]
    assert sizes >= [150, 120]


@pytest.mark.parametrize("family", DIFFER)
def test_answers_that_differ_differ_both_ways(family):
    assert not [pair for pair in both_ways(DIFFER, family) if equal(*pair)]


@pytest.mark.parametrize("family", EQUAL)
def test_answers_that_are_equal_are_equal_both_ways(family):
    assert not [pair for pair in both_ways(EQUAL, family) if not equal(*pair)]


def test_azr_s_verdict_is_kept_beside_ours():
    asked = [
        (MathProblem("p", "q", gold), answer)
        for gold, answer in (("5", "5"), ("R/r", "r/R"), (r"\frac{1}{2}", "½"), ("5", ""))
    ]
    with Workers(1) as workers:
        verdicts = list(grade_answers(asked, workers))
    judged = [(v.passed, v.azr_passed) for v in verdicts]
    assert judged == [(True, True), (False, True), (True, False), (False, False)]
    assert equal_to_azr("x", "X")


GOLDS = [
    ("18", "17", "21"),
    (r"\frac{3}{4}", "0.25", r"\frac{4}{3}"),
    (r"2\sqrt{3}", r"3\sqrt{2}", r"\sqrt{5}"),
    ("(1,2)", "(2,1)", "[1,2]"),
    ("x^2+1", "x^2-1", "x+1"),
    ("70000", "7000", "700"),
    (r"\{1,2\}", r"\{1,3\}", "3"),
    ("-5", "5", "0.5"),
    (r"\pi", "3", r"2\pi"),
    ("1024", "1042", "2048"),
    (r"\text{(B)}", r"\text{(C)}", "A"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\1\end{pmatrix}", "12"),
]  # fmt: skip

SEVERAL_BOXES = [
    (r"First I get \boxed{%(wrong)s}. Wait, it is \boxed{%(gold)s}.", True),
    (r"\boxed{%(gold)s}. On reflection: \boxed{%(wrong)s}", False),
    (r"\boxed{%(wrong)s}, \boxed{%(other)s}, and finally $\boxed{%(gold)s}$", True),
    (r"$$\boxed{%(gold)s}$$ and again \boxed{%(gold)s}", True),
    (r"<think>\boxed{%(gold)s}</think> <answer>\boxed{%(wrong)s}</answer>", False),
    (r"<think>\boxed{%(wrong)s}</think> <answer>\boxed{%(gold)s}</answer>", True),
    (r"\boxed{\boxed{%(gold)s}}", True),
    (r"\boxed{%(gold)s} was my guess. The last word: \boxed{%(other)s}.", False),
    (r"\fbox{%(wrong)s} no: \boxed{%(gold)s}", True),
]

NO_ANSWER = [
    "", " \n ", "I do not know.", r"\boxed{}", r"\boxed{", "<answer></answer>",
    "<answer>\n</answer> %(gold)s", "<think>%(gold)s</think>", "The box is empty: \\boxed{ }",
]  # fmt: skip


def test_several_boxes_the_last_one_counts():
    wanted = [
        (rule, gold, text % {"gold": gold, "wrong": wrong, "other": other}, right)
        for gold, wrong, other in GOLDS
        for text, right in SEVERAL_BOXES
        for rule in ("tagged",)
    ]
    assert len(wanted) >= 100
    judged = [(rule, g, t, bool(equal(g, RULES[rule](None, t)))) for rule, g, t, _ in wanted]
    assert judged == wanted


def test_no_answer_is_told_from_a_wrong_one():
    asked = [
        (
            MathProblem("p", "q", gold),
            RULES["tagged"](None, text % {"gold": gold} if "%(" in text else text),
        )
        for gold, _, _ in GOLDS
        for text in NO_ANSWER
    ]
    assert len(asked) >= 100
    with Workers(1) as workers:
        verdicts = list(grade_answers(asked, workers))
        (wrong,) = grade_answers([(MathProblem("p", "q", "1"), "2")], workers)
    assert {(v.passed, v.reason) for v in verdicts} == {(False, "no answer")}
    assert (wrong.passed, wrong.reason) == (False, "wrong")


HOSTILE = ["9" * 3000 + "!", "9^{9^{9^{9^9}}}", "(" * 1500, r"\frac{" * 400, "1+" * 1900 + "1"]


@pytest.mark.slow
def test_a_hostile_formula_costs_its_own_time_only():
    problem = MathProblem("p", "q", "5")
    answers = [(problem, text) for text in [*HOSTILE, "5", "6"]]
    with Workers(2, cpu_seconds=2.0) as workers:
        verdicts = list(grade_answers(answers, workers))
    assert [v.passed for v in verdicts] == [False] * len(HOSTILE) + [True, False]
    assert {v.reason for v in verdicts} <= {"timeout", "wrong", "passed"}
