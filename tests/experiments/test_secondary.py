"""recipes/questions/population_or_not/secondary: ages, and a miniature of all of it."""

import json
import shutil
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pandas as pd
import pytest
from refusals import refuses
from small_run import SMALL

from azr_population.cli.app import main
from azr_population.config.load import load_config, to_yaml
from azr_population.domains.code.chain_tasks import draw_eval_tasks
from azr_population.experiments.plan import PlannedRun
from azr_population.recipes import stored_scores
from azr_population.recipes.stored_scores import (
    Scores,
    deep_tasks,
    stored_students,
    study_runs,
    study_seeds,
    with_members,
)
from azr_population.runs import RunDirectory


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


def test_the_tasks_of_a_run_are_those_of_steps_51_to_60(secondary, tmp_path, monkeypatch):
    monkeypatch.setattr(secondary, "TASKS_PER_RUN", 10)  # all, of one each step
    run = RunDirectory(tmp_path / "run")
    run.create("seed: 1\n", {})
    task = {"type": "code_o", "inputs": ["1"], "outputs": ["2"]}
    run.append("tasks", [{"step": s, "program": str(s), **task} for s in range(1, 71)])
    steps = sorted(int(task.program) for task in secondary.tasks_of(run.path))
    assert steps == [*range(51, 61)]


def test_students_are_asked_strangers_tasks_and_give_four_answers(secondary, tmp_path, monkeypatch):
    asked = []

    class Asked:
        def __init__(self, context):
            pass

        def greedy(self, student, tasks):
            asked.append((student, set(tasks)))
            return float(student[-1]) / 10

        def any_right(self, students, tasks, seed):
            asked.append((seed, students, tasks))
            return 0.5

    loaded = SimpleNamespace(context=None, plan=SimpleNamespace(types=[]))
    students = {"1t1s": ["1t1s_0"], "4t4s": [f"4t4s_{n}" for n in range(4)]}
    stand_ins = {
        "find_members": str,
        "open_members": lambda members: nullcontext(loaded),
        "Scores": Asked,
        "deep_tasks": lambda *asked: "deep",
        "tasks_of": lambda run: [run],
        "stored_students": lambda run, step: students[run.partition("/")[0]] * (step == 60),
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(secondary, name, stand_in)
    runs = {arm: {n: f"{arm}/{n}" for n in (1, 2, 3)} for arm in secondary.ARMS}
    values = secondary.score_members(runs, [1, 2, 3], tmp_path / "out.json")
    assert values["2"]["1t1s, strangers"] == 0.0
    assert values["2"]["4t4s, strangers"] == pytest.approx(0.15), "the mean student"
    assert ("4t4s_3", {"1t1s/1", "1t1s/3", "4t4s/1", "4t4s/3"}) in asked
    assert (2, ["1t1s_0"] * 4, "deep") in asked and (2, students["4t4s"], "deep") in asked


def test_the_population_is_held_against_the_pair_and_the_replaced_at_their_end(
    secondary, tmp_path, monkeypatch
):
    runs = {n: SimpleNamespace(path=n) for n in (1, 2, 3)}
    scores = {"1t1s": 0.3, "4t4s": 0.5}
    measures = [(f"{arm}, {name}", arm) for arm in scores for name in secondary.SCORES]
    values = {str(n): {key: scores[arm] + n / 100 for key, arm in measures} for n in runs}

    def gaps(run, *of):
        shift = run.path / 100
        return pd.DataFrame({"step": [0, 0, 5], "gap": [-0.2 - shift, -0.4 - shift, 9.0]})

    stand_ins = {
        "study_runs": lambda folder, arm: runs,
        "with_members": dict,
        "child_gaps": gaps,
        "score_members": lambda *asked: values,
        "RunData": lambda path: SimpleNamespace(path=path, births=[]),
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(secondary, name, stand_in)
    out = tmp_path / "out.json"
    monkeypatch.setattr(sys, "argv", ["secondary.py", str(tmp_path), str(out)])
    secondary.main()
    means = {name: test["mean"] for name, test in json.loads(out.read_text())["tests"].items()}
    assert means == {
        "4T+4S above 1T+1S, strangers": 0.2,
        "4T+4S above 1T+1S, pass@4": 0.2,
        "replaced students, solve_rate less that of the others": -0.32,
        "replaced teachers, reward less that of the others": -0.32,
    }


def test_the_deep_half_of_an_eval_has_7_to_12_statements():
    types = ["code_o", "code_i"]
    drawn = draw_eval_tasks(24, 1, types)
    assert deep_tasks(24, 1, types) == [*drawn[12:24], *drawn[36:]]


def test_one_right_answer_of_several_is_enough_and_each_has_its_own_draw(monkeypatch):
    rights, draws = {"a": [1.0, 0.0, 1.0, 0.0], "b": [1.0, 1.0, 0.0, 0.0]}, []

    def shares(self, adapter, tasks, temperature, samples, seed):
        draws.append((temperature, samples, seed))
        return rights[adapter]

    monkeypatch.setattr(Scores, "shares", shares)
    assert Scores(None).any_right(["a", "b"], [], 101) == 0.75
    assert draws == [(1.0, 1, 1010), (1.0, 1, 1011)]


def test_students_are_those_of_the_asked_step_by_name(monkeypatch):
    def member(name, step, solves=True):
        of = {"name": name, "step": step, "solves": solves}
        return SimpleNamespace(**of, adapter=lambda: f"{name}@{step}")

    found = [member("base", 0)]
    for step in (60, 120):
        found += [member("student_1", step), member("student_0", step)]
        found += [member("teacher_0", step, False)]
    monkeypatch.setattr(stored_scores, "find_members", lambda run, every: found)
    assert stored_students("run", 60) == ["student_0@60", "student_1@60"]
    assert stored_students("run") == ["student_0@120", "student_1@120"]
    with refuses("run has no students of step 90"):
        stored_students("run", 90)


def test_a_run_that_is_not_of_the_study_is_refused(tmp_path):
    run = RunDirectory(tmp_path / "population_or_not" / "4t4s" / "seed_101")
    run.create(to_yaml(load_config(["population=4t4s", "seed=101"])), {})
    run.append("metrics", [{"step": 60}])
    with refuses(f"{run.path} is another run: it has "):
        study_runs(tmp_path, "4t4s")


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
