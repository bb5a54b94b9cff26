from __future__ import annotations

from typing import Any

from azr_population.reports.summary import summary


def step(number: int, solve_rate: float, nodes: float) -> dict[str, Any]:
    return {
        "step": number,
        "seconds": 30.0,
        "roles": {
            "teacher": {"validity": 0.8, "ast_nodes": nodes},
            "student": {"solve_rate": solve_rate},
        },
        "members": {
            "teacher_0": {"role": "teacher", "mu": 28.0, "sigma": 1.0, "generation": 0},
            "student_0": {"role": "student", "mu": 25.0, "sigma": 0.5, "generation": 2},
            "student_1": {"role": "student", "mu": 26.0, "sigma": 3.0},
        },
        "exam": {"mean": solve_rate / 2},
    }


def test_three_sentences_with_numbers() -> None:
    metrics = [step(1, 0.3, 20.0), step(2, 0.5, 26.5), step(3, 0.42, 27.25)]
    matches = [{"proposed": 48, "valid": 36}, {"proposed": 48, "valid": 40}]
    assert summary("1t2s", 5, metrics, matches, [{}]) == [
        "In 1t2s, 1 teacher and 2 students played 3 of 5 steps in 1:30, 96 tasks were proposed "
        "and 79% of them valid, and 1 member was replaced.",
        "From the first step to the last, the students' solve rate rose from 30% to 42%, the share "
        "of valid proposals stayed at 80%, a program's size rose from 20.0 to 27.2 AST nodes and "
        "the exam's mean rose from 15% to 21%.",
        "The teacher most surely strong is teacher_0 (mu 28.0, sigma 1.0, generation 0) and the "
        "student most surely strong is student_0 (mu 25.0, sigma 0.5, generation 2).",
    ]


def test_before_the_first_step() -> None:
    sentences = summary("4t4s", 20, [], [{}], [])
    assert len(sentences) == 3
    assert sentences[0] == "The run 4t4s has not finished a step yet."
    assert sentences[1].startswith("1 match and 0 replacements")


def test_records_with_nothing_in_them() -> None:
    sentences = summary("odd", None, [{"step": 1}], [], [])
    assert sentences[0].startswith("In odd, nobody played 1 steps in 0:00")
    assert sentences[1] == "No solve rate, validity or size of program is recorded."
    assert sentences[2].startswith("There are no ratings")
