from __future__ import annotations

from collections.abc import Callable
from typing import Any

from azr_population.report.charts import diagnostic_charts, headline_tiles, line_charts, lineage

MakeRun = Callable[..., dict[str, list[dict[str, Any]]]]


def chart(charts: list[dict[str, Any]], title: str) -> dict[str, Any]:
    (found,) = [chart for chart in charts if chart["title"] == title]
    return found


def test_a_role_and_its_members_share_a_chart(made_up_run: MakeRun) -> None:
    charts = line_charts(made_up_run(steps=3, teachers=2, students=2)["metrics"])
    nodes = chart(charts, "AST nodes")
    assert [(line["name"], line["main"]) for line in nodes["lines"]] == [
        ("teacher", True),
        ("teacher_0", False),
        ("teacher_1", False),
    ]
    assert nodes["lines"][0]["points"] == [(1.0, 25.25), (2.0, 25.5), (3.0, 25.75)]
    assert {line["name"] for line in chart(charts, "Solve rate")["lines"]} == {
        "student",
        "student_0",
        "student_1",
    }


def test_the_ratings_main_line_is_the_mean_of_its_members() -> None:
    metrics = [
        {
            "step": 1,
            "members": {
                "student_0": {"role": "student", "mu": 20.0, "sigma": 1.0},
                "student_1": {"role": "student", "mu": 30.0, "sigma": 2.0},
            },
        }
    ]
    charts = line_charts(metrics)
    assert chart(charts, "Rating mu")["lines"][0]["points"] == [(1.0, 25.0)]
    sure = chart(charts, "Conservative rating")["lines"]
    assert [line["points"] for line in sure] == [[(1.0, 20.5)], [(1.0, 17.0)], [(1.0, 24.0)]]


def test_long_runs_are_thinned_to_means() -> None:
    metrics = [{"step": i, "types": {"code_o": {"validity": i}}} for i in range(1, 1001)]
    (line,) = chart(line_charts(metrics), "Valid proposals by task type")["lines"]
    assert len(line["points"]) == 334
    assert line["points"][0] == (2.0, 2.0)


def test_charts_without_a_number_are_left_out() -> None:
    metrics = [
        {"step": 1},
        {"step": 2, "roles": None, "members": {"teacher_0": "x"}, "types": [], "exam": 3},
        {"step": 3, "roles": {"teacher": {"reward": float("nan")}}, "members": {}},
    ]
    assert line_charts(metrics) == []
    assert line_charts([]) == []


def test_lineage_skips_what_is_no_replacement(made_up_run: MakeRun) -> None:
    (one,) = lineage([{"step": "x"}, {}, *made_up_run(steps=5)["lineage"]])
    assert (one["child"], one["operator"], one["options"]["k"]) == (
        "student_1",
        "svd_subspace",
        "4",
    )


def test_a_single_agents_captions_know_no_students(made_up_run: MakeRun) -> None:
    charts = line_charts(made_up_run(teachers=0, students=0)["metrics"])
    notes = " ".join(chart["note"] for chart in charts)
    assert "student" not in notes and "teacher" not in notes
    assert [line["name"] for line in chart(charts, "Exam")["lines"]] == ["agent"]


def test_of_two_roles_that_coincide_one_line_is_drawn(made_up_run: MakeRun) -> None:
    metrics = made_up_run(steps=3)["metrics"]
    for step in metrics:
        step["roles"]["teacher"]["solve_rate"] = step["roles"]["student"]["solve_rate"] * 1.00001
    solving = chart(line_charts(metrics), "Solve rate")
    assert [line["name"] for line in solving["lines"] if line["main"]] == ["student"]
    assert solving["note"].endswith("the roles' means coincide")
    metrics[0]["roles"]["teacher"]["solve_rate"] = 0.99
    solving = chart(line_charts(metrics), "Solve rate")
    assert [line["name"] for line in solving["lines"] if line["main"]] == ["teacher", "student"]


def test_tiles_tell_the_last_value_of_what_only_grows_and_of_the_exam() -> None:
    metrics = [
        {
            "step": step,
            "roles": {"teacher": {"validity": step / 100}},
            "members": {"teacher_0": {"role": "teacher"}, "student_0": {"role": "student"}},
            "exam": {"mean": step / 200},
        }
        for step in range(1, 101)
    ]
    covered = {("coverage", ""): [(float(step), 3.0 * step) for step in range(1, 1002)]}
    charts = line_charts(metrics) + diagnostic_charts(covered, [])
    tiles = {tile["title"]: tile for tile in headline_tiles(charts, 100)}
    values = {k: (round(t["first"], 6), round(t["last"], 6)) for k, t in tiles.items()}
    assert values == {
        "Exam": (0.005, 0.5),
        "Valid proposals": (0.055, 0.955),
        "Kinds of problems covered": (9.0, 3003.0),
    }
    assert {title for title, tile in tiles.items() if tile["smooth"]} == {"Valid proposals"}
