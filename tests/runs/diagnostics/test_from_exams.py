from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from azr_population.runs.diagnostics import series
from azr_population.runs.directory import RunDirectory

Write = Callable[..., RunDirectory]


def sat(step: int, member: str, *scores: Any) -> dict[str, Any]:
    return {"step": step, "member": member, "scores": list(scores)}


def test_members_that_behave_alike_do_not_disagree(write: Write) -> None:
    exams = [
        *(sat(1, f"student_{i}", 0.5, 0.25) for i in range(3)),
        *(sat(5, "student_0", 1.0, 0.0), sat(5, "student_1", 0.0, 0.0)),
        sat(5, "student_2", 1.0, 0.5),
    ]
    run = write(exams=exams)
    assert series(run, "exam_disagreement") == [
        (1, 0.0),
        (5, pytest.approx((0.5 + 0.25 + 0.75) / 3)),
    ]


def test_one_member_and_scores_of_other_exams_say_nothing(write: Write) -> None:
    alone = [sat(1, "agent_0", 0.5)]
    unlike = [sat(2, "student_0", 0.5), sat(2, "student_1", 0.5, 0.5)]
    torn = [sat(3, "student_0", None), sat(3, "student_1", 1.0)]
    assert series(write(exams=[*alone, *unlike, *torn]), "exam_disagreement") == []


def test_greedy_scores_come_first_and_what_says_nothing_is_left_out(write: Write) -> None:
    rows = [
        sat(1, "student_0", 0, 0) | {"greedy": [1, 1, 0]},
        sat(1, "student_1", 0, 0) | {"greedy": [1, 0, 0]},
        sat(2, "student_0", 1, 0),
        sat(2, "student_1", 0, 1),
        sat(3, "student_0", None, 1),
        sat(3, "student_1", 0, 1),
        sat(4, "student_0", 1) | {"greedy": "torn"},
        sat(4, "student_1", 1, 1),
    ]
    run = write(exams=rows)
    assert [step for step, _ in series(run, "exam_reliability")] == [1]
    assert series(run, "exam_spread") == [(1, 0.0)]
