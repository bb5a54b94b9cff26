"""Recipes: what their files say, which runs they need, how those are played, and what is drawn."""

import gzip
import json
import os
import re
from dataclasses import replace

import pandas as pd
import pytest
from recipe_plans import ARMS, RECIPE, plan, played
from refusals import refuses
from small_run import SMALL

from azr_population.cli import main
from azr_population.config.load import load_config
from azr_population.config.schema import HyperparameterConfig
from azr_population.errors import UserError
from azr_population.experiments.plan import (
    RecipePlan,
    check_runs,
    check_saving,
    other_values,
    save_runs,
)
from azr_population.experiments.recipes import (
    Chart,
    read_arms,
    read_recipe,
    recipe_names,
    recipes_folder,
    seed_numbers,
)
from azr_population.experiments.results import (
    _scope,
    draw,
)
from azr_population.runs import RunDirectory


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_has_its_arms_its_page_and_what_it_is_to_show(name):
    arms = read_arms()
    recipe = read_recipe(name, arms)
    assert recipe.arms and (recipe.folder / "README.md").is_file()
    assert recipe.folder.parent.name == "paper" or (recipe.hypotheses and recipe.decision)


@pytest.mark.parametrize("name", read_arms().arms)
def test_the_overrides_of_every_arm_compose(name):
    arms = read_arms()
    arm = arms.find(name)
    load_config([*arms.protocols["defaults"].common, *arm.overrides])


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("{title: x, figure: y, titel: x}", "titel"),
        ("{title: x, figure: y, arms: [3t3s]}", "3t3s"),
        ("{title: x, figure: y, protocol: cpu}", "cpu"),
        ("{title: x, figure: y, table: [{label: a, metric: b, reduce: end}]}", "reduce"),
        ("{title: x, figure: y, hypotheses: [{claim: a, row: b, arm: c}]}", "b"),
        ("{title: x", "cannot be read"),
    ],
)
def test_a_mistake_in_a_recipe_is_one_line_with_its_place(tmp_path, text, key, monkeypatch):
    monkeypatch.setattr("azr_population.experiments.recipes.recipes_folder", lambda: tmp_path)
    (tmp_path / "paper" / "mine").mkdir(parents=True)
    (tmp_path / "paper" / "mine" / "recipe.yaml").write_text(text)
    with pytest.raises(UserError) as refused:
        read_recipe("mine", ARMS)
    assert key in str(refused.value) and "\n" not in str(refused.value)


def test_seeds_are_a_number_or_a_range():
    assert list(seed_numbers(2)) == [1, 2] and list(seed_numbers("4-6")) == [4, 5, 6]
    for text in ("0", "6-4", "x"):
        with pytest.raises(ValueError):
            seed_numbers(text)


def test_runs_are_planned_seed_by_seed_and_reused_when_longer(planned):
    assert [run.name for run in planned] == ["one seed 1", "two seed 1", "one seed 2", "two seed 2"]
    played(planned[0], steps=6)
    assert [run.finished for run in planned] == [True, False, False, False]
    assert planned[0].seconds_left == 0 and planned[1].seconds_left == 8.0
    check_runs(planned)


def test_a_run_is_finished_when_its_members_are_stored(planned):
    played(planned[0])
    assert planned[0].finished
    (planned[0].directory.checkpoints / "step_2").mkdir()  # it was killed before the next one
    assert not planned[0].finished


def test_committed_metrics_that_are_damaged_are_one_line(planned, tmp_path, monkeypatch):
    folder = tmp_path / "recipes"
    monkeypatch.setattr("azr_population.experiments.plan.recipes_folder", lambda: folder)
    played(planned[0])
    save_runs(plan(tmp_path, seeds="1"))
    (file,) = folder.rglob("metrics.jsonl.gz")
    file.write_bytes(file.read_bytes()[:-20])
    with refuses(f"{file} is damaged"):
        list(RunDirectory(file.parent).read("metrics"))


def test_runs_that_are_missing_or_unfinished_are_named(planned, tmp_path):
    played(planned[0])
    played(planned[3], steps=2)
    text = _scope(plan(tmp_path))
    assert text.startswith("1 of 4 runs, seeds 1 to 2, 4 steps.")
    assert "Not run: two seeds 1; one seeds 2." in text
    assert "not in the table: two seed 2 (step 2)." in text
    assert "Run at commits 1234567 (1)." in text


def test_runs_on_another_base_are_refused(planned):
    for run in (planned[0], planned[2]):
        played(run)
    file = planned[2].path / "environment.json"
    file.write_text(file.read_text().replace("abc", "xyz"))
    with refuses("a base with the hash xyz"):
        check_runs(planned)


def test_a_run_with_another_configuration_is_refused_and_an_unfinished_one_is_not(planned):
    played(planned[0], steps=2)
    check_runs(planned)
    config = planned[0].directory.config_file
    config.write_text(config.read_text().replace("console: auto", "console: plain"))
    assert other_values(planned[0]) == "", "what is shown may differ"
    config.write_text(config.read_text().replace("batch_size: ", "batch_size: 1"))
    with refuses("population.batch_size"):
        check_runs(planned)


@pytest.mark.parametrize("evolves", ["stored", "wanted"])
def test_a_run_in_which_other_hyperparameters_evolve_is_refused(planned, evolves, monkeypatch):
    evolving, none = {"lr": HyperparameterConfig(init=[1e-4, 1e-3])}, {}
    stored, wanted = (evolving, none) if evolves == "stored" else (none, evolving)
    monkeypatch.setattr(planned[0].config.evolution, "hyperparameters", stored)
    played(planned[0], steps=2)
    monkeypatch.setattr(planned[0].config.evolution, "hyperparameters", wanted)
    with refuses("evolution.hyperparameters.lr.init"):
        check_runs(planned)


def test_committed_runs_stand_in_for_those_that_are_not_there(planned, tmp_path, monkeypatch):
    folder = tmp_path / "recipes"
    monkeypatch.setattr("azr_population.experiments.plan.recipes_folder", lambda: folder)
    played(planned[0])
    played(planned[1], steps=2)  # not finished, so not committed
    coverage = {2: {"agent/coverage": 5.1234567}}
    monkeypatch.setattr("azr_population.reading.derived.derived", lambda *inputs: coverage)
    save_runs(plan(tmp_path))
    (stored,) = folder.rglob("metrics.jsonl.gz")
    lines = list(map(json.loads, gzip.decompress(stored.read_bytes()).splitlines()))
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert lines[1]["agent/coverage"] == 5.12346 and "agent_0/lines" not in lines[0]
    assert str(tmp_path) not in (stored.parent / "config.yaml").read_text()
    own = plan(tmp_path, from_results=True).runs
    assert not own[0].directory.results_only, "what is in --out comes first"
    again = plan(tmp_path / "elsewhere", from_results=True).runs
    assert [run.directory.results_only for run in again] == [True, False, False, False]
    assert again[0].finished and not other_values(again[0])
    too_long = plan(tmp_path / "elsewhere", from_results=True, steps=5).runs
    assert not any(run.started for run in too_long)


def test_saving_loses_no_run_of_the_committed_results(planned, tmp_path, monkeypatch):
    folder = tmp_path / "recipes"
    for module in ("plan", "recipes"):
        monkeypatch.setattr(f"azr_population.experiments.{module}.recipes_folder", lambda: folder)
    mine = folder / "paper" / "mine"
    mine.mkdir(parents=True)
    (mine / "recipe.yaml").touch()
    with refuses("--save-results"):
        check_saving(plan(tmp_path))  # not a checkout
    (tmp_path / "pyproject.toml").touch()
    check_saving(plan(tmp_path))
    results = plan(tmp_path, save_results=True).results
    results.mkdir(parents=True)
    runs = {"one seed 1": 4, "two seed 1": 4, "one seed 2": 4, "two seed 2": 0}
    (results / "versions.json").write_text(json.dumps({"runs": runs}))
    check_saving(plan(tmp_path, save_results=True))
    for part in ({"seeds": "1"}, {"arms": "one"}, {"steps": 2}, {"from_results": True}):
        with refuses("--save-results"):
            check_saving(plan(tmp_path, save_results=True, **part))
    for run in planned[:3]:
        played(run)
    check_saving(plan(tmp_path, save_results=True, from_results=True))


def test_the_study_s_hypotheses_are_those_of_its_page():
    recipe = read_recipe("population_or_not", read_arms())
    arms = {
        "single agent": "single",
        "1T+1S": "1t1s",
        "frozen teacher": "1t1s_frozen_teacher",
        "4T+4S": "4t4s",
        "without evolution": "4t4s_no_evolution",
    }
    page = (recipe.folder / "README.md").read_text()
    written = []
    for step, arm, than in re.findall(r"(?m)^\| \d \| (\d+) \| (.+?) \| (.+?) \|", page):
        name, _, student = arm.partition(", ")
        metric = "eval/worst/deep" if student == "weakest student" else "eval/greedy/deep"
        written.append((metric, "last", int(step), "", arms[name], arms[than], 0.0))
    rows = [recipe.rows[each.row] for each in recipe.hypotheses]
    assert len(written) == 6 and written == [
        (row.metric, row.reduce, row.step, row.role, each.arm, each.than, each.margin)
        for row, each in zip(rows, recipe.hypotheses, strict=True)
    ]


@pytest.mark.parametrize("count", ["81", "86", "103"])
def test_the_name_of_a_seed_is_not_taken_for_a_number_of_seeds(count):
    with refuses(f"write --seeds {count}-{count} for seed {count}, or --seeds 1-{count} for all"):
        planned_seeds("what_ships", count)


@pytest.mark.parametrize(
    ("typed", "seeds"),
    [("81-81", [81]), ("103-104", [103, 104]), ("3", [1, 2, 3]), ("24", [*range(1, 25)])],
)
def test_ranges_and_plausible_counts_of_seeds_are_taken(typed, seeds):
    assert planned_seeds("what_ships", typed) == seeds


def planned_seeds(name, typed):
    arms = read_arms()
    return list(RecipePlan(read_recipe(name, arms), arms, seeds=typed).seeds)


@pytest.mark.parametrize(
    ("name", "row", "chart"),
    [
        ("fig3_dynamics", "entropy in nats (late)", "solve_rate"),
        ("fig5_ratings", "mu of teachers (end)", "mu"),
        ("table2_wallclock", "seconds over the single agent's", "time_step"),
    ],
)
def test_committed_results_are_drawn_with_their_table(name, row, chart, capsys, tmp_path):
    assert main(["recipe", name, "--from-results", "--out", str(tmp_path)]) == 0
    assert f"| {row} |" in capsys.readouterr().out
    folder = tmp_path / "results" / name
    written_table = pd.read_csv(folder / "table.csv")
    stored = recipes_folder() / "paper" / name / "results" / "table.csv"
    pd.testing.assert_frame_equal(written_table, pd.read_csv(stored), rtol=1e-5)
    assert (folder / f"{chart}.svg").read_text().startswith("<svg")
    assert os.path.getsize(folder / "summary.md") > 500


def test_births_are_drawn_of_runs_that_were_played_and_of_committed_ones(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("azr_population.experiments.plan.recipes_folder", lambda: tmp_path / "r")
    births = {"metric": "reward", "title": "Reward", "role": "student", "births": True}
    recipe = RECIPE.model_copy(
        update={"charts": (Chart.model_validate(births),), "table": (), "hypotheses": ()}
    )
    asked = plan(tmp_path, arms="two", seeds="1-1", steps=6)
    asked.recipe = recipe
    (run,) = asked.runs
    born = ["population=2t2s", "evolution.interval=2", "evolution.grace_period=0"]
    played = ["train", *SMALL, *born, f"run.dir={run.path}", "run.steps=6", "seed=1"]
    assert main(played) == 0
    first = draw(asked).read_text()
    table = pd.read_csv(asked.results / "reward.csv")
    assert table["operator"][0] == "all operators" and table["births"].max() >= 2
    save_runs(asked)
    asked.runs[0] = replace(run, path=asked.committed / "two" / "seed_1")
    again = draw(asked).read_text()
    assert again.partition("What a member")[0] == first.partition("What a member")[0]
    pd.testing.assert_frame_equal(pd.read_csv(asked.results / "reward.csv"), table)
    assert "all children" in (asked.results / "reward.svg").read_text()


def test_hypotheses_are_told_with_what_came_out(capsys, tmp_path):
    typed = ["recipe", "what_ships", "--from-results", "--out", str(tmp_path)]
    assert main(typed) == 0
    shown = capsys.readouterr().out
    assert "(98.8% interval), n=6, p=0.1: **not shown**; more than 5.1 points is excluded" in shown
    assert main([*typed, "--seeds", "81-84"]) == 0
    assert "not decided (planned for 6 seeds, here 4)" in capsys.readouterr().out


def test_an_arm_is_played_for_its_own_number_of_steps():
    protocol = ARMS.protocols["defaults"].model_copy(update={"arm_steps": {"two": 6}})
    arms = ARMS.model_copy(update={"protocols": {"defaults": protocol}})
    assert RecipePlan(RECIPE, arms).lengths == {"one": 4, "two": 6}
    assert RecipePlan(RECIPE, arms, steps=3).lengths == {"one": 3, "two": 3}
