from __future__ import annotations

from collections.abc import Callable
from typing import Any

from azr_population.runs.diagnostics import consumption
from azr_population.runs.directory import RunDirectory

Write = Callable[..., RunDirectory]


def member(role: str, **counts: int) -> dict[str, Any]:
    return {"role": role, **counts}


def test_totals_per_member_role_and_run(write: Write) -> None:
    one = {
        "teacher_0": member("teacher", tokens=300, rollouts=48, trained_tokens=300),
        "student_0": member("student", tokens=100, rollouts=96, trained_tokens=50, updates=1),
        "student_1": member("student", tokens=200, rollouts=96, trained_tokens=50, updates=1),
    }
    for own in one.values():
        own["trained_rows"] = 48
    steps = [
        {"step": 1, "seconds": 6.0, "phases": {"exam": 1.0}, "members": one},
        {"step": 2, "seconds": 5.0, "phases": {}, "members": one},
    ]
    found = consumption(write(metrics=steps))
    assert list(found) == [
        *("teacher_0", "student_0", "student_1", "role:teacher", "role:student", "all")
    ]
    assert found["student_1"] == {
        "role": "student",
        "tokens": 400,
        "rollouts": 192,
        "trained_tokens": 100,
        "trained_rows": 96,
        "updates": 2,
        "steps": 2,
        "members": 1,
        "seconds": 2.5,  # 250 of the 1000 tokens generated or trained on, of 10 seconds
        "rows_per_step": 48.0,
    }
    assert found["role:student"]["tokens"] == 600 and found["role:student"]["members"] == 2
    assert found["role:student"]["rows_per_step"] == 48.0
    assert found["role:teacher"]["seconds"] == 6.0
    assert found["all"]["seconds"] == 10.0 and found["all"]["trained_rows"] == 288


def test_an_older_run_without_counts_and_an_empty_one(write: Write) -> None:
    found = consumption(write(metrics=[{"step": 1, "members": {"agent_0": {"role": "agent"}}}]))
    assert found["agent_0"]["tokens"] == 0 and found["all"]["seconds"] == 0.0
    assert consumption(write(name="empty"))["all"]["members"] == 0
