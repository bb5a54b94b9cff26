from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from azr_population.runs.diagnostics import series
from azr_population.runs.directory import RunDirectory

Write = Callable[..., RunDirectory]


def sat(step: int, member: str, *scores: Any) -> dict[str, Any]:
    return {"step": step, "member": member, "t1": list(scores)}


def test_members_that_behave_alike_do_not_disagree(write: Write) -> None:
    exams = [
        *(sat(1, f"student_{i}", 0.5, 0.25) for i in range(3)),
        *(sat(5, "student_0", 1.0, 0.0), sat(5, "student_1", 0.0, 0.0)),
        sat(5, "student_2", 1.0, 0.5),
    ]
    run = write(evals=exams)
    assert series(run, "exam_disagreement") == [
        (1, 0.0),
        (5, pytest.approx((0.5 + 0.25 + 0.75) / 3)),
    ]


def test_one_member_and_scores_of_other_exams_say_nothing(write: Write) -> None:
    alone = [sat(1, "agent_0", 0.5)]
    unlike = [sat(2, "student_0", 0.5), sat(2, "student_1", 0.5, 0.5)]
    torn = [sat(3, "student_0", None), sat(3, "student_1", 1.0)]
    assert series(write(evals=[*alone, *unlike, *torn]), "exam_disagreement") == []


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
    run = write(evals=rows)
    assert [step for step, _ in series(run, "exam_reliability")] == [1]
    assert series(run, "exam_spread") == [(1, 0.0)]


def test_slopes_stand_at_the_last_step_and_damage_is_nothing(tmp_path):
    run = RunDirectory(tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"step":1}\n{"step":50}\n')
    assert series(run, "student_slope") == []
    (tmp_path / "crossplay.json").write_text(json.dumps({"slopes": {"student": 0.1}}))
    assert series(run, "student_slope") == [(50, 0.1)]
    assert series(run, "teacher_slope") == []
    (tmp_path / "crossplay.json").write_text('{"slopes": {"student"')
    assert series(run, "student_slope") == []


def test_fitness_and_skill_are_correlated_over_the_students_of_a_step(tmp_path):
    members = {
        name: {"role": "student", "mu": mu, "sigma": 1.0}
        for name, mu in (("student_0", 20.0), ("student_1", 25.0), ("student_2", 30.0))
    }

    def scores(*values):
        return dict(zip(members, values, strict=True))

    rows = [
        {"step": 1, "members": members, "exam": {"members": dict.fromkeys(members, 0.5)}},
        {"step": 2, "members": members, "exam": None},
        {
            "step": 3,
            "members": members,
            "exam": {"members": scores(3, 2, 1)},
        },
        {
            "step": 4,
            "members": members,
            "exam": {"members": scores(1, 3, 2)},
        },
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = RunDirectory(tmp_path)
    assert [(step, round(r, 6)) for step, r in series(run, "fitness_skill")] == [
        (3, -1.0),
        (4, 0.5),
    ]
