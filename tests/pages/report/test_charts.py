from __future__ import annotations

from collections.abc import Callable
from typing import Any

from azr_population.pages.report.charts import diagnostic_charts, line_charts, lineage
from azr_population.pages.report.lines import line_of
from azr_population.pages.report.tiles import headline_tiles

STUDENTS = tuple(f"student_{i}" for i in range(4))
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


BIRTH = [{"step": 3, "child": "student_0"}]


def turnover() -> list[dict[str, Any]]:
    """Two students; the first is replaced at the end of step 3 and has a new rating at once."""
    sigma = {1: 2.0, 2: 1.0, 3: 6.0, 4: 1.5, 5: 1.0}
    return [
        {
            "step": step,
            "members": {
                "student_0": {
                    **{"role": "student", "generation": int(step >= 3), "answer_reward": step / 10},
                    **{"mu": 20.0 + step, "sigma": sigma[step]},
                },
                "student_1": {"role": "student", "generation": 0, "mu": 20.0, "sigma": 1.0},
            },
        }
        for step in range(1, 6)
    ]


def test_a_line_breaks_where_the_individual_changes() -> None:
    charts = line_charts(turnover(), BIRTH)
    (reward,) = chart(charts, "Reward of answers")["lines"]
    # The results of step 3 are still those of the member that is replaced at its end ...
    assert (reward["name"], len(reward["points"]), reward["starts"]) == ("student_0", 5, [3])
    # ... its rating is already the child's.
    mu = {line["name"]: line for line in chart(charts, "Rating mu")["lines"]}
    assert mu["student_0"]["starts"] == [2]
    assert "starts" not in mu["student_1"] and "starts" not in mu["student"]


def test_newborns_stay_out_of_the_mean_conservative_rating() -> None:
    lines = {
        n["name"]: n for n in chart(line_charts(turnover(), BIRTH), "Conservative rating")["lines"]
    }
    assert [x for x, _ in lines["student_0"]["points"]] == [1, 2, 4, 5]
    assert lines["student_0"]["starts"] == [2]
    mean = dict(lines["student"]["points"])
    assert mean[3] == 17.0  # student_1's alone: with the newborn it would be 11
    assert mean[4] == (17.0 + 24.0 - 4.5) / 2


def test_thinning_mixes_no_two_individuals() -> None:
    points = [(float(step), 0.0 if step <= 501 else 1.0) for step in range(1, 1001)]
    drawn = line_of("student_0", "student", False, points, births=[501.0])
    assert {y for _, y in drawn["points"]} == {0.0, 1.0}
    (start,) = drawn["starts"]
    assert drawn["points"][start][1] == 1.0 and drawn["points"][start - 1][1] == 0.0


def test_one_colour_means_one_thing(made_up_run: MakeRun) -> None:
    run = made_up_run(steps=8)
    charts = line_charts(run["metrics"])
    charts += diagnostic_charts({("coverage", ""): [(1.0, 2.0), (2.0, 3.0)]}, [])
    meant: dict[str, set[str]] = {}
    for drawn in charts:
        for line in drawn["lines"]:
            meant.setdefault(line["colour"], set()).add(line["name"])
    assert meant["student"] <= {"student", "mean", "best", "worst", *STUDENTS}  # they sit the exam
    assert [meant[f"type-{i}"] for i in range(3)] == [{"code_o"}, {"code_i"}, {"code_f"}]
    greys = {colour for colour in meant if colour.startswith("part-")}
    roles = {"teacher", "student"}
    assert set(meant) == {*roles, "type-0", "type-1", "type-2", "ink", *greys}


def test_what_means_the_same_shares_its_scale(made_up_run: MakeRun) -> None:
    charts = line_charts(made_up_run(steps=8)["metrics"])
    shared = {c["title"]: c["scale"] for c in charts if "scale" in c}
    assert shared == {
        **{"Solve rate": "solve_rate", "Solve rate by task type": "solve_rate"},
        **{"Valid proposals": "validity", "Valid proposals by task type": "validity"},
    }


def test_long_runs_are_thinned_to_means() -> None:
    metrics = [{"step": i, "types": {"code_o": {"validity": i}}} for i in range(1, 1001)]
    (line,) = chart(line_charts(metrics), "Valid proposals by task type")["lines"]
    assert len(line["points"]) == 334
    assert line["points"][0] == (2.0, 2.0)


def test_charts_without_a_number_are_left_out() -> None:
    metrics = [
        {"step": 1},
        {"step": 2, "roles": None, "members": {"teacher_0": "x"}, "types": [], "exam": 3},
        {"step": 3, "roles": {"teacher": {"proposal_reward": float("nan")}}, "members": {}},
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
    assert solving["note"].endswith("(both roles have the same mean)")
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
