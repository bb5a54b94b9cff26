from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from azr_population.runs.diagnostics import series
from azr_population.runs.diagnostics.from_exams import reliability
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


def test_reliability_and_spread_are_those_of_a_known_table() -> None:
    # Means .75, .5, .25: a mean square of 1/4. Residuals' squares add up to 5/6, for 6 degrees of
    # freedom.
    table = [[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]]
    reliable, spread = reliability(table)
    assert reliable == pytest.approx(1 - (5 / 36) / 0.25)
    assert spread == pytest.approx(((0.25 - 5 / 36) / 4) ** 0.5)


def test_members_of_one_skill_have_no_reliability_and_those_that_differ_have() -> None:
    generator = np.random.default_rng(1)
    hard = generator.uniform(0.2, 0.8, 2000)
    alike, unlike = (
        [(generator.uniform(size=2000) < hard + shift).tolist() for shift in shifts]
        for shifts in ([0.0] * 4, [-0.06, -0.02, 0.02, 0.06])
    )
    noisy, known = reliability(alike), reliability(unlike)
    assert noisy and noisy[0] < 0.6
    assert known and known[0] > 0.85
    # The sample's sd of those shifts is .0516.
    assert known[1] == pytest.approx(0.0516, abs=0.02)


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
