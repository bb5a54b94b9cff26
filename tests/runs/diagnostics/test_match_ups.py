from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from azr_population.runs.diagnostics import match_ups, series
from azr_population.runs.diagnostics.match_ups import who_met_whom
from azr_population.runs.directory import RunDirectory

Write = Callable[..., RunDirectory]


def match(step: int, teacher: str, student: str, games: tuple[int, ...]) -> dict[str, Any]:
    keys = ("student_wins", "teacher_wins", "draws", "forfeits")
    row = {"step": step, "teacher": teacher, "student": student, "valid": sum(games[:3])}
    return {**row, "solve_rate": 0.5, **dict(zip(keys, games, strict=True))}


MATCHES = [
    match(1, "teacher_0", "student_0", (4, 2, 2, 2)),
    match(1, "teacher_1", "student_1", (0, 10, 0, 0)),
    match(2, "teacher_0", "student_1", (0, 0, 0, 0)),
]


def test_win_rates_count_forfeits_against_the_teacher(write: Write) -> None:
    run = write(matches=MATCHES)
    assert series(run, "win_rate", "student_0") == [(1, 0.7)]
    assert series(run, "win_rate", "teacher_0") == [(1, pytest.approx(0.3))]
    assert series(run, "win_rate") == [(1, 0.35)] == series(run, "win_rate", "student")
    assert series(run, "win_rate", "teacher") == [(1, 0.65)]


def test_unless_the_run_was_told_otherwise(write: Write) -> None:
    run = write(config="matchmaking: {invalid_counts_as_loss: false}", matches=MATCHES)
    assert series(run, "win_rate", "student_0") == [(1, 5 / 8)]


def test_a_single_agent_plays_no_games(write: Write) -> None:
    run = write(matches=[match(1, "agent_0", "agent_0", (4, 2, 2, 2)), {"step": 2}, {}])
    assert series(run, "win_rate") == []


def test_match_ups_have_solve_rates_and_last_ratings(write: Write) -> None:
    metrics = [{"step": s, "members": {"teacher_0": {"mu": 24.0 + s}}} for s in (1, 2)]
    found = match_ups(write(matches=MATCHES, metrics=metrics))
    assert found["teachers"] == ["teacher_0", "teacher_1"]
    assert found["cells"][0][0]["solve_rate"] == 0.5
    assert found["cells"][1][0] is None
    assert found["mu"] == {
        **{"teacher_0": 26.0, "teacher_1": None},
        **{"student_0": None, "student_1": None},
    }


def test_no_matches(write: Write) -> None:
    assert match_ups(write()) == {"teachers": [], "students": [], "cells": [], "mu": {}}


def test_match_ups_weigh_by_tasks_and_know_who_never_met() -> None:
    table = who_met_whom(
        [
            {"teacher": "teacher_0", "student": "student_10", "valid": 30, "solve_rate": 0.5},
            {"teacher": "teacher_0", "student": "student_10", "valid": 10, "solve_rate": 0.1},
            {"teacher": "teacher_1", "student": "student_9", "valid": 0, "solve_rate": None},
            {"step": 3},
        ]
    )
    assert table["students"] == ["student_9", "student_10"]
    assert table["cells"] == [
        [None, {"matches": 2, "tasks": 40, "solve_rate": 0.4}],
        [{"matches": 1, "tasks": 0, "solve_rate": None}, None],
    ]
