from __future__ import annotations

import math
from typing import Any

from azr_population.domains.known import find_domain
from azr_population.pages.report.charts import line_charts
from azr_population.pages.report.summary import summary
from azr_population.pages.report.tiles import headline_tiles
from azr_population.runs.diagnostics import Change, Estimate
from azr_population.runs.diagnostics.measures import size_of


def told(
    name: str,
    steps: int | None,
    metrics: list[Any],
    matches: list[Any],
    lineage: list[Any],
    changes: dict[str, Change] | None = None,
) -> list[str]:
    """The summary as the page has it."""
    last = metrics[-1]["step"] if metrics else 0
    tiles = headline_tiles(line_charts(metrics), last, changes, size_of(find_domain("code")))
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


def change(first: float, last: float, low: float, high: float) -> Change:
    return Change(first, last, Estimate(last - first, low, high, 60))


def test_what_is_within_noise_is_called_that_with_its_interval() -> None:
    metrics = [step(1, 0.41, 20.0), step(2, 0.5, 26.5), step(3, 0.42, 27.25)]
    matches = [{"proposed": 48, "valid": 36}, {"proposed": 48, "valid": 40}]
    changes = {
        "solve_rate": change(0.27, 0.25, -0.176, 0.136),
        "ast_nodes": change(20.0, 27.25, 5.0, 9.5),
        "validity": change(0.8, 0.8, math.nan, math.nan),
    }
    assert told("1t2s", 5, metrics, matches, [{}], changes) == [
        "In 1t2s, 1 teacher and 2 students played 3 of 5 steps in 1:30 with the exams, 96 "
        "tasks were proposed and 79% of them valid, and 1 member was replaced.",
        "From the first step to the last, the size of a program rose from 20.0 to 27.3 (+7.2 AST "
        "nodes [+5.0, +9.5]). Within noise: the students' solve rate (-2.0 points [-17.6, +13.6]). "
        "From the first step to the last, with no interval for lack of records: the mean score at "
        "the exam (21%, then 21%) and the share of valid proposals (80%, then 80%). In brackets "
        "are 95% intervals over the tasks of this run (exam: its first sitting against its last).",
        "3 steps are few: they show that all parts work together, and of the solve rate only "
        "changes of more than about 16 points. Only runs with other seeds can tell whether a "
        "change comes back.",
        "By mu - 3 sigma, student_0 leads the students (mu 25.0, sigma 0.5, generation 2) and the "
        "teacher is rated mu 28.0, sigma 1.0.",
    ]


def test_a_long_run_is_not_called_short() -> None:
    metrics = [step(i, 0.4, 20.0) for i in range(1, 42)]
    both = {"solve_rate": change(0.4, 0.4, -0.1, 0.1)}
    (said,) = told("1t2s", 41, metrics, [], [], both)[1:-1]
    assert said.startswith(
        "From the first 5 steps to the last 5, every change is within noise: the students' solve"
    )
    assert "are few" in told("1t2s", 40, metrics[:40], [], [], both)[2]


def test_who_was_just_born_leads_nobody() -> None:
    births = [{"step": 2, "child": "student_0"}, {"step": 1, "child": "student_1"}]
    metrics = [step(1, 0.4, 20.0), step(2, 0.4, 20.0)]
    assert told("1t2s", 2, metrics, [], births)[-1] == (
        "The teacher is rated mu 28.0, sigma 1.0 and the student is rated mu 26.0, sigma 3.0; "
        "student_0 was born at the end of the last step and has not played yet."
    )


def test_before_the_first_step() -> None:
    assert told("4t4s", 20, [], [], [])[0] == "The run 4t4s has not finished a step yet."
    sentences = told("4t4s", 20, [], [{}], [])
    assert sentences[0].startswith("No step of the run 4t4s is in its metrics.jsonl")
    assert sentences[1].startswith("1 match and 0 replacements")


def test_records_with_nothing_in_them() -> None:
    sentences = told("odd", None, [{"step": 1}], [], [])
    assert sentences[1] == "One step is recorded: nothing can have changed yet."
    sentences = told("odd", None, [{"step": 1}, {"step": 2}], [], [])
    assert sentences[0].startswith("In odd, nobody played 2 steps in 0:00")
    assert sentences[1] == "No solve rate, validity or size of program is recorded."
    assert sentences[2].startswith("There are no ratings")


def test_one_student_is_no_crowd() -> None:
    metrics = [step(i, 0.3 + 0.1 * i, 20.0) for i in (1, 2)]
    for one in metrics:
        del one["members"]["student_1"]
    sentences = told("1t1s", 2, metrics, [], [])
    assert sentences[0].endswith("and nobody was replaced.")
    assert "the student's solve rate (40%, then 50%), the score at the exam (20%" in sentences[1]
    assert sentences[3] == (
        "The teacher is rated mu 28.0, sigma 1.0 and the student is rated mu 25.0, sigma 0.5."
    )
