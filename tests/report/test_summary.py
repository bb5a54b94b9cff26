from __future__ import annotations

from typing import Any

from azr_population.report.charts import headline_tiles, line_charts
from azr_population.report.summary import summary


def told(
    name: str, steps: int | None, metrics: list[Any], matches: list[Any], lineage: list[Any]
) -> list[str]:
    """The summary as the page has it."""
    last = metrics[-1]["step"] if metrics else 0
    tiles = headline_tiles(line_charts(metrics), last)
    return summary(name, steps, metrics, matches, lineage, tiles)


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
    metrics = [step(1, 0.41, 20.0), step(2, 0.5, 26.5), step(3, 0.42, 27.25)]
    matches = [{"proposed": 48, "valid": 36}, {"proposed": 48, "valid": 40}]
    assert told("1t2s", 5, metrics, matches, [{}]) == [
        "In 1t2s, 1 teacher and 2 students played 3 of 5 steps in 1:30 with the exams, 96 "
        "tasks were proposed and 79% of them valid, and 1 member was replaced.",
        "From the first step to the last, the students' solve rate rose from 41% to 42%, the share "
        "of valid proposals stayed at 80% and a program's size rose from 20.0 to 27.3 AST nodes; "
        "from the first exam to the last, the mean stayed at 21%.",
        "By mu - 3 sigma, student_0 leads the students (mu 25.0, sigma 0.5, generation 2) and the "
        "teacher is rated mu 28.0, sigma 1.0.",
    ]


def test_before_the_first_step() -> None:
    assert told("4t4s", 20, [], [], [])[0] == "The run 4t4s has not finished a step yet."
    sentences = told("4t4s", 20, [], [{}], [])
    assert sentences[0].startswith("No step of the run 4t4s is in its metrics.jsonl")
    assert sentences[1].startswith("1 match and 0 replacements")


def test_records_with_nothing_in_them() -> None:
    sentences = told("odd", None, [{"step": 1}], [], [])
    assert sentences[0].startswith("In odd, nobody played 1 steps in 0:00")
    assert sentences[1] == "No solve rate, validity or size of program is recorded."
    assert sentences[2].startswith("There are no ratings")


def test_one_student_is_no_crowd() -> None:
    metrics = [step(i, 0.3 + 0.1 * i, 20.0) for i in (1, 2)]
    for one in metrics:
        del one["members"]["student_1"]
    sentences = told("1t1s", 2, metrics, [], [])
    assert sentences[0].endswith("and nobody was replaced.")
    assert "the student's solve rate rose from 40% to 50%" in sentences[1]
    assert sentences[1].endswith("from the first exam to the last, the score rose from 20% to 25%.")
    assert sentences[2] == (
        "The teacher is rated mu 28.0, sigma 1.0 and the student is rated mu 25.0, sigma 0.5."
    )
