"""recipes/questions/population_or_not/secondary: ages, and a miniature of all of it."""

import json
import sys
from types import SimpleNamespace

import pytest
from small_run import SMALL

from azr_population.cli.app import main


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


@pytest.mark.slow
def test_a_miniature_of_the_analyses(secondary, tmp_path, monkeypatch):
    monkeypatch.setattr(secondary, "STEP", 2)
    monkeypatch.setattr(secondary, "FIRST", 1)
    monkeypatch.setattr(secondary, "TASKS_PER_RUN", 2)
    monkeypatch.setattr(secondary, "EVAL_TASKS", 24)
    for arm, steps in (("1t1s", 3), ("4t4s", 2)):
        for seed in (1, 2, 3):
            folder = tmp_path / arm / f"seed_{seed}"
            overrides = [f"population={arm}", f"run.steps={steps}", f"seed={seed}"]
            assert main(["train", *SMALL, *overrides, f"run.dir={folder}"]) == 0
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["secondary.py", str(tmp_path), str(out)])
    secondary.main()
    content = json.loads(out.read_text())
    assert content["seeds"] == [1, 2, 3]
    assert {name: len(column) for name, column in content["values"].items()} == {
        f"{arm}, {name}": 3 for arm in ("1t1s", "4t4s") for name in ("strangers", "pass@4")
    }
    assert all(0 <= value <= 1 for column in content["values"].values() for value in column)
    assert content["tests"]["4T+4S above 1T+1S, strangers"]["n"] == [3, 3]
