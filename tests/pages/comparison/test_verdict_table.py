from __future__ import annotations

import math
from pathlib import Path

import pytest
from made_up_run import make_run, write_run

from azr_population.pages.comparison.curves import MAX_POINTS, curves
from azr_population.pages.comparison.differences import differences
from azr_population.pages.comparison.inputs import Arm, Run, arms_of
from azr_population.pages.comparison.verdict_table import horizon, summarize, verdict_text, verdicts
from azr_population.runs.diagnostics import Estimate


def arm(name: str, *rates: float, steps: int = 20) -> Arm:
    """An arm of logs whose solve rate is `rate` throughout."""
    return Arm(
        name,
        tuple(
            Run(
                Path(f"{name}_{i}"),
                None,
                {s: {"pred_code_i/accuracy": rate} for s in range(1, steps + 1)},
            )
            for i, rate in enumerate(rates)
        ),
    )


def test_a_series_is_reduced_to_one_number() -> None:
    series = [(step, float(step)) for step in range(1, 31)]
    assert summarize(series, "end", 20) == 20.0
    assert summarize(series, "late", 20) == 19.5
    assert summarize(series, "change", 20) == 18.0
    assert summarize(series, "end", 0) is None
    assert summarize([(1, 2.0)], "change", 20) is None


def test_differences_are_from_the_first_arm_with_welchs_interval() -> None:
    found = verdicts([arm("a", 0.3, 0.31, 0.32), arm("b", 0.5, 0.52, 0.54)], 20)
    (late, change) = found
    assert late.taken.title == "Solve rate, last tenth of the steps"
    assert late.differences[0] is None
    difference = late.differences[1]
    assert difference is not None
    assert difference.mean == pytest.approx(0.21)
    # Standard errors .01/sqrt(3) and .02/sqrt(3), 2.94 degrees of freedom: t = 3.21.
    assert difference.high - difference.mean == pytest.approx(0.0415, abs=2e-4)
    assert late.words == ["compared with", "higher (n=3)"]
    assert change.words[1] == "the same (n=3)"


def test_verdicts_in_plain_words() -> None:
    nan = math.nan
    assert verdict_text(Estimate(-1.0, -2.0, -0.5, 3), 3, 3) == "lower (n=3)"
    assert verdict_text(Estimate(1.0, -2.0, 4.0, 3), 3, 4) == "no difference shown (n=3 and 4)"
    assert verdict_text(Estimate(1.0, nan, nan, 1), 1, 3).startswith("no verdict: one seed")


def test_one_seed_gets_no_verdict_and_an_unknown_measure_none_at_all() -> None:
    found = verdicts([arm("a", 0.3), arm("b", 0.9)], 20)
    assert all("no verdict" in row.words[1] for row in found)
    assert {row.taken.measure.name for row in found} == {"solve_rate"}
    assert verdicts([arm("a"), arm("b")], 20) == []


def test_arms_are_compared_where_all_have_got_to() -> None:
    arms = [arm("a", 0.3, steps=20), Arm("b", (*arm("b", 0.5, steps=8).runs,))]
    assert horizon(arms) == 8
    assert horizon([]) == 0
    begun = arm("b", 0.5, 0.5, steps=0)
    assert horizon([arms[0], Arm("b", (*arms[1].runs, *begun.runs))]) == 8, "none has no verdict"
    assert horizon([arm("a", 0.5, steps=0)]) == 0


def test_curves_have_bands_over_seeds_and_thin_seeds() -> None:
    (chart,) = curves([arm("a", 0.2, 0.4, steps=120), arm("b", 0.5, steps=120)])
    names = [(line["name"], line["main"]) for line in chart["lines"]]
    assert names == [("a (n=2)", True), ("a, seed 1", False), ("a, seed 2", False), ("b", True)]
    mean = chart["lines"][0]["points"]
    assert len(mean) == 40 <= MAX_POINTS
    # t of one degree of freedom at 97.5%: 12.706 times .1, cut where a share ends.
    assert mean[0] == [2.0, 0.3, 0.0, 1.0]
    assert chart["lines"][3]["points"][0] == [2.0, 0.5]
    assert "means of 3 steps" in chart["note"]


def test_a_hole_in_one_seed_does_not_take_its_neighbours_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("azr_population.pages.comparison.curves.MAX_POINTS", 6)
    holed = arm("a", 0.2, 0.4, steps=12)
    for step in (2, 6, 9):
        del holed.runs[0].log[step]
    (chart,) = curves([holed, arm("b", 0.5, steps=12)])
    assert [point[0] for point in chart["lines"][0]["points"]] == [1, 3, 5, 7, 9, 11]


def test_exams_are_drawn_as_they_are(tmp_path: Path) -> None:
    exams = [
        {"step": step, **({"exam": {"mean": step / 1000}} if step % 5 == 0 else {})}
        for step in range(1, 501)
    ]
    for name in "ab":
        write_run(tmp_path / name, {"metrics": exams})
    charts = curves(arms_of([str(tmp_path / name) for name in "ab"]))
    (chart,) = [chart for chart in charts if chart["title"] == "Exam, mean of the members"]
    assert chart["lines"][0]["points"][:2] == [[5.0, 0.005], [10.0, 0.01]]
    assert len(chart["lines"][0]["points"]) == 100
    assert "means of" not in chart["note"]


def test_a_run_and_its_copy_count_once(tmp_path: Path) -> None:
    rows = {1: {"pred_code_i/accuracy": 0.5}}
    logs = Arm("logs", tuple(Run(Path(name), None, rows) for name in ("a.log", "b.log")))
    for seed, name in ((1, "seed_1"), (1, "copy"), (2, "seed_2")):
        config = f"seed: {seed}\nrun: {{dir: /runs/{name}, steps: 8}}\n"
        write_run(tmp_path / "x" / name, make_run(steps=8, seed=seed), config=config)
    names = ("seed_1", "copy", "seed_2")
    _, runs = arms_of([f"{arm}={tmp_path / 'x' / n}" for arm in ("a", "b") for n in names])
    assert [run.name for run in runs.independent] == ["seed_1", "seed_2"]
    for row in verdicts([logs, runs], 8):
        assert [estimate.n for estimate in row.values] in ([1, 2], [0, 2])
    warnings = differences([logs, runs]).warnings
    assert any(w.startswith("logs has one run more") and "b.log" in w for w in warnings)
    assert any(w.startswith("b has one run more") and "copy" in w for w in warnings)


def test_an_arm_without_a_valid_task_is_told(tmp_path: Path) -> None:
    for name, agent in (("a", {"validity": 0.5, "solve_rate": 0.5}), ("b", {"validity": 0.0})):
        rows = [{"step": step, "roles": {"agent": agent}} for step in range(1, 9)]
        write_run(tmp_path / name, {"metrics": rows}, steps=8)
    found = verdicts(arms_of([str(tmp_path / "a"), str(tmp_path / "b")]), 8)
    words = {row.taken.measure.name: row.words[1] for row in found}
    assert words["solve_rate"] == "no valid task"
    assert words["validity"] == "no verdict: one seed (n=1)"
