"""What is written for a recipe, from made-up runs whose numbers are known."""

import csv
import json
from dataclasses import replace

import needs
import pytest

from azr_population.errors import UserError
from azr_population.experiments.azr_commands import plan_azr_runs
from azr_population.experiments.recipe import Figure, TableRow
from azr_population.experiments.results import draw
from azr_population.experiments.results_tables import number, with_interval
from azr_population.experiments.runs import keep_runs, plan_runs
from azr_population.runs.diagnostics import Estimate, interval


@pytest.fixture
def drawn(arms, recipe, fake_run, metrics, tmp_path):
    """Arm one at solve rates .2 and .4, arm two at .8 and .6 and longer than asked for."""
    needs.module("matplotlib", "-e '.[report]'")
    recipe = replace(
        recipe,
        rows=(
            TableRow("solve rate", "solve_rate"),
            TableRow("exam", "exam_mean", "end"),
            TableRow("reward", "proposal_reward"),
        ),
        figures=(
            Figure("solve_rate", "Solve rate", "share", limits=(0.0, 1.0)),
            Figure("halstead_volume", "Volume", "bits"),
        ),
    )
    planned = plan_runs(recipe, arms, recipe.arms, 2, 4, tmp_path / "runs")
    rates = {"one seed 1": 0.2, "one seed 2": 0.4, "two seed 1": 0.8, "two seed 2": 0.6}
    for run in planned:
        steps = 4 if run.arm.name == "one" else 8
        lines = [metrics(n, rates[run.name] if n <= 4 else 0.0) for n in range(1, steps + 1)]
        lines[3]["exam"] = {"mean": 0.1, "best": 0.2, "worst": 0.0}
        fake_run(run.path, run.overrides, lines)
    folder = tmp_path / "results"
    draw(recipe, arms, planned, 4, "nano", folder)
    return folder


def rows(path):
    return list(csv.DictReader(path.open()))


def test_the_table_has_means_intervals_and_differences_to_the_baseline(drawn):
    one, two, exam, *_ = rows(drawn / "table.csv")
    assert (one["arm"], one["seeds"], one["mean"], one["values"]) == ("one", "2", "0.3", "0.2 0.4")
    # 0.1 * sqrt(2) / sqrt(2) times Student's t of one degree of freedom, 12.706
    assert (one["low"], one["high"]) == ("-0.97062", "1.57062")
    assert one["minus_one"] == ""
    assert (two["arm"], two["mean"], two["minus_one"]) == ("two", "0.7", "0.4")
    assert float(two["minus_low"]) < 0 < float(two["minus_high"])
    assert (exam["measure"], exam["mean"]) == ("exam", "0.1")


def test_runs_that_are_longer_are_cut_at_the_steps_asked_for(drawn):
    curve = rows(drawn / "solve_rate.csv")
    assert [row["step"] for row in curve] == ["1", "2", "3", "4"] * 2
    assert {row["mean"] for row in curve if row["line"] == "two"} == {"0.7"}


def test_the_summary_tells_what_it_rests_on_and_what_there_is_nothing_of(drawn):
    text = (drawn / "summary.md").read_text()
    assert "2 arms, 2 seeds, 4 steps." in text
    assert "| solve rate | 0.300 [-0.971, 1.571] | 0.700 [-0.571, 1.971] |" in text
    assert "![Solve rate](solve_rate.svg)" in text
    assert "Nothing is recorded of: reward." in text
    assert "No run has `halstead_volume` yet." in text
    assert "| one | 1 | 48.0 | 1.00 | 10 | 100 | 50 | 2.0 | agent 0.001 |" in text, (
        "the budget of a member"
    )
    assert (drawn / "solve_rate.svg").read_text().startswith("<?xml")
    assert not (drawn / "halstead_volume.svg").exists()


def test_what_made_the_results_is_written_beside_them(drawn):
    pins = json.loads((drawn / "versions.json").read_text())
    assert pins["seeds"] == [1, 2] and pins["steps"] == 4
    assert pins["arms"]["two"] == ["population=single", "population.rows=24"]
    assert pins["bases"] == {} and pins["commits"] == [], "made-up runs name none"
    assert pins["runs"]["two seed 1"] == 8
    assert {"command", "commit", "python", "packages", "common"} <= set(pins)


def test_bases_and_commits_are_those_of_the_runs(arms, recipe, fake_run, metrics, tmp_path):
    planned = plan_runs(recipe, arms, recipe.arms, 2, 4, tmp_path / "runs")
    for place, run in enumerate(planned):
        fake_run(run.path, run.overrides, [metrics(step, 0.5) for step in range(1, 5)])
        made = {"base": "abc", "commit": f"c{place % 2}"}
        (run.path / "environment.json").write_text(json.dumps(made))
    folder = tmp_path / "results"
    draw(recipe, arms, planned, 4, "nano", folder)
    pins = json.loads((folder / "versions.json").read_text())
    assert pins["bases"] == {"": "abc"} and pins["commits"] == ["c0", "c1"]


def test_missing_and_unfinished_runs_are_named(arms, recipe, fake_run, metrics, tmp_path):
    planned = plan_runs(recipe, arms, recipe.arms, 1, 4, tmp_path / "runs")
    fake_run(planned[0].path, planned[0].overrides, [metrics(1, 0.5)])
    text = draw(recipe, arms, planned, 4, "nano", tmp_path / "results").read_text()
    assert "**one seed 1 is at step 1 of 4.** **two seed 1 is at step 0 of 4.**" in text


def test_a_run_that_goes_on_is_drawn_and_left_out_of_the_table(
    arms, recipe, fake_run, metrics, tmp_path
):
    needs.module("matplotlib", "-e '.[report]'")
    recipe = replace(
        recipe,
        rows=(TableRow("solve rate", "solve_rate"), TableRow("best", "exam_best", "end")),
        figures=(Figure("solve_rate", "Solve rate", "share"),),
    )
    planned = plan_runs(recipe, arms, recipe.arms, 2, 4, tmp_path / "runs")
    for run, steps in zip(planned, (4, 4, 4, 2), strict=True):
        fake_run(
            run.path, run.overrides, [metrics(n, 0.1 * n, exam=0.5) for n in range(1, 5)][:steps]
        )
    text = draw(recipe, arms, planned, 4, "nano", tmp_path / "results").read_text()
    assert "| measure | one (n=2) | two (n=1) |" in text
    assert "| solve rate | 0.400 [0.400, 0.400] | 0.400 |" in text
    assert "`--draw --steps 2` compares them all at step 2" in text
    assert "no evidence" in text, "the best of several members is lucky"
    curve = rows(tmp_path / "results" / "solve_rate.csv")
    assert [row["seed_2"] for row in curve if row["line"] == "two"] == ["0.1", "0.2", "", ""]


def test_runs_that_are_not_those_of_their_arm_are_named(arms, recipe, fake_run, metrics, tmp_path):
    planned = plan_runs(recipe, arms, recipe.arms, 1, 1, tmp_path / "runs")
    for run in planned:  # both folders hold the run of arm one
        fake_run(run.path, planned[0].overrides, [metrics(1, 0.5)])
    text = draw(recipe, arms, planned, 1, "nano", tmp_path / "results").read_text()
    assert (
        "**two seed 1 is another run and left out: it has population.rows=96 instead of 24.**"
        in text
    )
    assert "one seed 1 is another" not in text
    assert "| two |" not in text, "neither in the budget"


def test_runs_of_an_older_version_are_named_with_the_key_they_lack(
    arms, recipe, fake_run, metrics, tmp_path
):
    planned = plan_runs(recipe, arms, ("one",), 1, 1, tmp_path / "runs")
    run = fake_run(planned[0].path, planned[0].overrides, [metrics(1, 0.5)])
    kept = [
        line for line in (run.path / "config.yaml").read_text().splitlines() if "elites" not in line
    ]
    (run.path / "config.yaml").write_text("\n".join(kept))
    text = draw(recipe, arms, planned, 1, "nano", tmp_path / "results").read_text()
    assert "Played before there was `evolution.elites`: one seed 1." in text


def test_without_any_run_there_is_still_a_summary(arms, recipe, tmp_path):
    recipe = replace(recipe, rows=(TableRow("solve rate", "solve_rate"),))
    planned = plan_runs(recipe, arms, recipe.arms, 1, 4, tmp_path / "runs")
    assert "0 of 4" in draw(recipe, arms, planned, 4, "nano", tmp_path / "results").read_text()


def test_an_interval_is_shown_where_there_is_one():
    assert with_interval(interval([0.5])) == "0.500"
    assert with_interval(Estimate(12.34, 11.0, 13.5, 3)) == "12.3 [11.0, 13.5]"
    assert number(float("nan")) == "-"


def test_a_place_for_results_that_cannot_be_made_is_named(arms, recipe, tmp_path):
    (tmp_path / "file").write_text("")
    planned = plan_runs(recipe, arms, recipe.arms, 1, 4, tmp_path / "runs")
    with pytest.raises(UserError, match=r"--results .*file/results cannot be made"):
        draw(recipe, arms, planned, 4, "nano", tmp_path / "file" / "results")


def test_what_was_kept_is_named_with_its_commit(arms, recipe, fake_run, metrics, tmp_path):
    planned = plan_runs(recipe, arms, recipe.arms, 1, 1, tmp_path / "runs")
    for run in planned:
        fake_run(run.path, run.overrides, [metrics(1, 0.5)])
        (run.path / "environment.json").write_text('{"commit": "0123456789"}')
    keep_runs(planned, tmp_path / "kept")
    elsewhere = tmp_path / "elsewhere"
    planned = plan_runs(recipe, arms, recipe.arms, 1, 1, elsewhere, tmp_path / "kept")
    text = draw(recipe, arms, planned, 1, "nano", tmp_path / "results").read_text()
    assert "Played at commit 0123456 and kept: one seed 1, two seed 1." in text


def test_runs_inside_azr_are_drawn_though_their_overrides_are_azrs(
    arms, recipe, fake_run, metrics, tmp_path
):
    planned = plan_azr_runs(recipe, arms, ("one",), 1, 4, tmp_path / "runs")
    for run in planned:
        fake_run(run.path, ["population=single"], [metrics(n, 0.5) for n in range(1, 5)])
    text = draw(recipe, arms, planned, 4, "7b", tmp_path / "results").read_text()
    assert "1 arms, 1 seed, 4 steps." in text and "**" not in text
