"""recipes/questions/population_or_not/secondary: ages, and a miniature of all of it."""

import json
import shutil
import sys
from types import SimpleNamespace

import pytest
from small_run import SMALL

from azr_population.cli.app import main
from azr_population.experiments.plan import PlannedRun
from azr_population.recipes.stored_scores import study_runs, study_seeds, with_members


@pytest.fixture
def secondary(recipe_script):
    return recipe_script("questions/population_or_not/secondary.py")


def test_the_age_of_the_replaced_counts_from_the_last_birth_in_that_slot(secondary):
    births = [
        SimpleNamespace(step=step, child=child)
        for step, child in [
            (5, "student_1"),
            (5, "teacher_0"),
            (15, "student_1"),
            (20, "student_3"),
        ]
    ]
    run = SimpleNamespace(births=births)
    assert secondary.ages_of_the_replaced(run, "student") == [5, 10, 20]
    assert secondary.ages_of_the_replaced(run, "teacher") == [5]


def test_committed_runs_count_but_have_no_members(tmp_path):
    other = tmp_path / "population_or_not" / "4t4s" / "seed_201"
    other.mkdir(parents=True)
    (other / "config.yaml").write_text("seed: 201\n")
    runs = study_runs(tmp_path, "4t4s")
    assert {101, 102} <= set(runs) <= set(study_seeds()) == set(range(101, 113))
    assert with_members(runs) == {}


@pytest.mark.slow
def test_a_miniature_of_the_analyses(secondary, tmp_path, monkeypatch):
    monkeypatch.setattr(secondary, "STEP", 2)
    monkeypatch.setattr(secondary, "FIRST", 1)
    monkeypatch.setattr(secondary, "TASKS_PER_RUN", 2)
    monkeypatch.setattr(secondary, "EVAL_TASKS", 24)
    runs = {
        arm: {n: PlannedRun(arm, n, steps, tmp_path / arm / f"seed_{n}", ()) for n in (1, 2, 3)}
        for arm, steps in (("1t1s", 3), ("4t4s", 2))
    }
    monkeypatch.setattr(secondary, "study_runs", lambda folder, arm: runs[arm])
    for run in (run for of_arm in runs.values() for run in of_arm.values()):
        overrides = [f"population={run.arm_name}", f"run.steps={run.steps}", f"seed={run.seed}"]
        assert main(["train", *SMALL, *overrides, f"run.dir={run.path}"]) == 0
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["secondary.py", str(tmp_path), str(out)])
    secondary.main()
    content = json.loads(out.read_text())
    assert content["seeds"] == [1, 2, 3] and content["planned_seeds"] == 12
    measures = {f"{arm}, {name}" for arm in ("1t1s", "4t4s") for name in ("strangers", "pass@4")}
    assert [set(of_seed) for of_seed in content["values"].values()] == [measures] * 3
    assert all(0 <= v <= 1 for of_seed in content["values"].values() for v in of_seed.values())
    assert content["tests"]["4T+4S above 1T+1S, strangers"]["n"] == [3, 3]
    # What stands there is not computed again; with another seed all of it is.
    content["values"]["1"]["4t4s, pass@4"] = 0.5
    out.write_text(json.dumps(content))
    secondary.main()
    assert json.loads(out.read_text())["values"] == content["values"]
    shutil.rmtree(runs["1t1s"].pop(3).path)
    secondary.main()
    fewer = json.loads(out.read_text())
    assert fewer["seeds"] == [1, 2] and list(fewer["values"]) == ["1", "2"]
    assert fewer["tests"]["replaced students, solve_rate less that of the others"]["n"] == [3]
