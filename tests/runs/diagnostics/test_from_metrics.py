from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refusals import refuses

from azr_population.runs.diagnostics import MEASURES, series
from azr_population.runs.directory import RunDirectory

Write = Callable[..., RunDirectory]

NAMES = (
    *("solve_rate", "validity", "unique", "ast_nodes", "ast_depth", "cyclomatic", "lines"),
    *("halstead_volume", "proposal_tokens", "answer_tokens", "exam_mean", "exam_best"),
    *("exam_worst", "mu", "sigma", "win_rate", "coverage", "coverage_per_task", "entropy"),
    *(
        "seconds",
        "validation",
        "benchmarks",
        "reward",
        "proposal_reward",
        "answer_reward",
        "loss",
        "grad_norm",
    ),
    *("cells_per_step", "operations", "conditions", "magnitude"),
    *("fitness_skill", "past_solve_rate", "student_slope", "teacher_slope"),
    *("weight_cosine", "exam_disagreement", "descent_depth", "related_pairs", "ancestor_age"),
    *("exam_spread", "exam_reliability", "founders"),
    *("fitness_reliability", "exam_own"),
)


def population(step: int, **exam: Any) -> dict[str, Any]:
    teacher = {"role": "teacher", "validity": 0.5, "ast_nodes": 20.0 + step, "entropy": 0.8}
    student = {"role": "student", "solve_rate": 0.25, "answer_tokens": 9.0, "entropy": 0.4}
    return {
        "step": step,
        "seconds": 5.0,
        "phases": {"propose": 1.0, "exam": 2.0},
        "roles": {"teacher": {**teacher, "solve_rate": 0.3}, "student": student},
        "members": {
            "teacher_0": {**teacher, "mu": 26.0, "sigma": 2.0},
            "student_0": {**student, "mu": 24.0, "sigma": 2.0},
            "student_1": {**student, "mu": 23.0, "sigma": 4.0},
        },
        "exam": exam or None,
    }


def single(step: int) -> dict[str, Any]:
    agent = {"role": "agent", "mu": 25.0, "sigma": 8.3, "validity": 0.75, "solve_rate": 0.5}
    return {"step": step, "roles": {"agent": agent}, "members": {"agent_0": agent}}


def test_the_catalogue() -> None:
    assert set(MEASURES) == set(NAMES)
    assert all(one.title and one.about and one.axis for one in MEASURES.values())


def test_unnamed_is_whoever_proposes_or_solves(write: Write) -> None:
    run = write(metrics=[population(1), population(2)])
    assert series(run, "ast_nodes") == [(1, 21.0), (2, 22.0)]
    assert series(run, "solve_rate") == [(1, 0.25), (2, 0.25)]
    assert series(run, "solve_rate", "teacher") == [(1, 0.3), (2, 0.3)]
    assert series(run, "solve_rate", "student_1") == [(1, 0.25), (2, 0.25)]
    assert series(run, "solve_rate", "agent") == []


def test_a_single_agent_is_both(write: Write) -> None:
    run = write(metrics=[single(1)])
    assert series(run, "validity") == [(1, 0.75)] == series(run, "validity", "agent")
    assert series(run, "solve_rate") == [(1, 0.5)]
    assert series(run, "mu") == [] == series(run, "mu", "agent_0")


def test_ratings_are_means_over_a_role(write: Write) -> None:
    run = write(metrics=[population(1)])
    assert series(run, "mu") == [(1, 26.0)] == series(run, "mu", "teacher")
    assert series(run, "mu", "student") == [(1, 23.5)]
    assert series(run, "sigma", "student_1") == [(1, 4.0)]


def test_past_opponents_have_a_line_of_their_own(write: Write) -> None:
    guest = {"student": "student_0@1", "tasks": 3, "solve_rate": 0.25}
    run = write(metrics=[population(1), {**population(2), "past": guest}, {"step": 3, "past": 1}])
    assert series(run, "past_solve_rate") == [(2, 0.25)]


def test_entropy_is_the_mean_over_members(write: Write) -> None:
    run = write(metrics=[population(1)])
    assert series(run, "entropy")[0][1] == pytest.approx((0.8 + 0.4 + 0.4) / 3)
    assert series(run, "entropy", "teacher") == [(1, 0.8)]


def test_exams_stand_where_they_were_held(write: Write) -> None:
    exam = {"mean": 0.3, "best": 0.4, "worst": 0.2, "members": {"student_0": 0.4}}
    run = write(metrics=[population(1, **exam), population(2), population(3, **exam)])
    assert series(run, "exam_mean") == [(1, 0.3), (3, 0.3)]
    assert series(run, "exam_best") == [(1, 0.4), (3, 0.4)]
    assert series(run, "exam_worst", "student") == [(1, 0.2), (3, 0.2)]
    assert series(run, "exam_mean", "student_0") == [(1, 0.4), (3, 0.4)]


def test_seconds_of_a_step_and_its_phases(write: Write) -> None:
    run = write(metrics=[population(1)])
    assert series(run, "seconds") == [(1, 5.0)]
    assert series(run, "seconds", "training") == [(1, 3.0)]
    assert series(run, "seconds", "propose") == [(1, 1.0)]


def test_steps_ascend_the_later_record_counts_and_what_is_no_number_is_left_out(
    write: Write,
) -> None:
    nothing = {"step": 2, "roles": {"agent": {"validity": None}}, "members": None, "exam": 3}
    odd = {"step": 4, "roles": {"agent": {"validity": "high"}}, "phases": [1], "seconds": True}
    later = {"step": 1, "roles": {"agent": {"validity": 0.9}}}
    run = write(metrics=[single(3), single(1), nothing, odd, {"no": "step"}, later])
    assert series(run, "validity") == [(1, 0.9), (3, 0.75)]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_recorded_is_nothing_to_show(write: Write, name: str) -> None:
    assert series(write(), name) == []
    assert series(write(config="", name="begun", metrics=[], tasks=[], matches=[]), name) == []
    assert series(write(config=": torn [", name="torn", metrics=[{"step": 1}]), name) in (
        [],
        [(1, 0.0)],  # coverage: no cell in step 1 is a fact
    )


def test_a_torn_line_is_skipped_and_a_growing_run_read_again(write: Write) -> None:
    run = write(metrics=[single(1)])
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "roles": {"ag')
    assert series(run, "validity") == [(1, 0.75)]
    run = write(metrics=[single(1), single(2)])
    assert series(run, "validity") == [(1, 0.75), (2, 0.75)]


def test_a_caller_may_change_what_it_got(write: Write) -> None:
    run = write(metrics=[single(1)])
    series(run, "validity").clear()
    assert series(run, "validity") == [(1, 0.75)]


def test_an_unknown_name_is_answered_with_the_known(write: Write) -> None:
    with refuses("diagnostic"):
        series(write(), "solverate")


def test_every_diagnostic_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "diagnostics.md").read_text()
    assert [name for name in NAMES if f"`{name}`" not in page] == []
