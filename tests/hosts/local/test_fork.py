"""Forks of a run on the nano base: the same state, changed settings."""

import shutil
from types import SimpleNamespace

import pytest
import torch
from test_local_run import records, train

from azr_population.cli import main
from azr_population.domains.domain import HeldOut
from azr_population.hosts.local.state import Store
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import load_checkpoint, members_digest, steps

pytestmark = pytest.mark.integration


def test_checkpoints_and_snapshots_stay_where_they_are_asked_for(finished):
    assert [step for step, _ in steps(finished / "checkpoints")] == [2, 4]
    assert [step for step, _ in steps(finished / "snapshots")] == [0, 1, 2, 4]
    last, first = (finished / "snapshots" / f"step_{step}" for step in (4, 0))
    assert len(list(first.iterdir())) == len(list(last.iterdir()))
    assert members_digest(last) == members_digest(finished / "members")
    other = (members_digest(finished / "snapshots" / f"step_{step}") for step in (0, 1, 2))
    assert len({*other, members_digest(last)}) == 4


def test_a_resumed_run_has_the_snapshots_of_a_whole_one(finished, tmp_path):
    path = shutil.copytree(finished, tmp_path / "run")
    # As a crash in step 4 leaves it: a snapshot that no checkpoint covers.
    shutil.rmtree(path / "checkpoints" / "step_4")
    (path / "snapshots" / "step_4").rename(path / "snapshots" / "step_3")
    assert main(["resume", str(path)]) == 0
    assert [step for step, _ in steps(path / "snapshots")] == [0, 1, 2, 4]
    again, whole = (run / "snapshots" / "step_4" for run in (path, finished))
    assert members_digest(again) == members_digest(whole)


def test_a_fork_without_a_change_is_the_run_itself(finished, tmp_path):
    path = tmp_path / "same"
    assert train(path, "run.steps=4", f"run.init_from={finished}@2") == 0
    assert records(path) == records(finished)
    assert members_digest(path / "members") == members_digest(finished / "members")
    assert RunDirectory(path).environment()["fork"] == {"run": str(finished), "step": 2}


def test_a_fork_shares_the_past_and_goes_its_own_way(finished, tmp_path, capsys):
    path = tmp_path / "other"
    changed = ["population.teacher_lr=0", "seed=4", "run.steps=3", "population.batch_size=24"]
    assert train(path, f"run.init_from={finished}@2", *changed) == 0
    output = capsys.readouterr().out
    assert "seed=4" in output and "population.teacher_lr=0" in output
    ours, theirs = records(path), records(finished)
    assert [row["step"] for row in ours[0]] == [1, 2, 3]
    assert ours[0][:2] == theirs[0][:2] and ours[0][2] != theirs[0][2]
    # A teacher whose step is 0 stays what it was; a student does not.
    at_2, at_3 = (
        dict(steps(folder))[2 + n]
        for n, folder in enumerate((finished / "checkpoints", path / "checkpoints"))
    )
    before, after = (
        torch.load(checkpoint / "state.pt", weights_only=True) for checkpoint in (at_2, at_3)
    )
    same = [
        all(
            torch.equal(old, new)
            for name, pair in before["adapters"][slot].items()
            for old, new in zip(pair, after["adapters"][slot][name], strict=True)
        )
        for slot in range(4)
    ]
    assert same == [True, True, False, False]


def test_a_fork_with_another_eval_forgets_the_programs_of_that_eval(
    finished, tmp_path, monkeypatch
):
    monkeypatch.setattr(HeldOut, "is_copy", lambda self, program: True)
    path = tmp_path / "other"
    assert train(path, f"run.init_from={finished}@2", "run.steps=3", "eval.seed=5") == 0
    for folder, empty in ((finished, False), (path, True)):
        checkpoint = load_checkpoint(folder / "checkpoints", 2)
        assert (checkpoint.plain["buffer"]["tasks"] == []) is empty


def test_a_fork_with_another_eval_has_no_scores_of_its_parents(tmp_path):
    small = ["population=1t1s", "task=code_o", "eval.every=1", "eval.tasks_per_type=3"]
    parent = tmp_path / "parent"
    assert train(parent, *small, "run.steps=1") == 0
    for name, seed, expected in (("same", 1121, {1, 2}), ("other", 5, {2})):
        fork = RunDirectory(tmp_path / name)
        typed = [f"run.init_from={parent}@1", f"eval.seed={seed}", "run.steps=2"]
        assert train(fork.path, *small, *typed) == 0
        assert {row["step"] for row in fork.evals()} == expected
        first, second = fork.metrics()
        assert ("eval/greedy" in first) == (1 in expected) and "eval/greedy" in second
        assert "student/solve_rate" in first


def test_a_fork_with_fewer_task_types_forgets_the_tasks_of_the_others(finished, tmp_path):
    path = tmp_path / "other"
    typed = ["run.steps=3", "task.types=[code_o]"]
    assert train(path, f"run.init_from={finished}@2", *typed) == 0
    parent, fork = (
        {task["type"] for task in load_checkpoint(at / "checkpoints", 2).plain["buffer"]["tasks"]}
        for at in (finished, path)
    )
    assert fork == {"code_o"} < parent


def test_a_fork_with_another_fitness_does_not_compare_it_with_the_parents(finished, tmp_path):
    path = tmp_path / "other"
    typed = ["run.steps=3", "evolution.fitness=mean_reward"]
    assert train(path, f"run.init_from={finished}@2", *typed) == 0
    parent, fork = (
        [
            child["victim_fitness"]
            for child in load_checkpoint(at / "checkpoints", 2).plain["credit"]
        ]
        for at in (finished, path)
    )
    assert None not in parent and fork == [None] * len(parent) != []


def test_a_fork_keeps_its_own_best_member(tmp_path):
    run, kept = RunDirectory(tmp_path / "fork"), []
    run.create("seed: 1\n", {"fork": {"run": "parent", "step": 5}})
    run.append("metrics", [{"step": 5, "eval/best": 0.7}, {"step": 6, "eval/best": 0.5}])
    roster = SimpleNamespace(students=[SimpleNamespace(name="student_0")])
    store = SimpleNamespace(
        directory=run, folders=SimpleNamespace(keep_best=lambda *scores: kept.append(scores))
    )
    for step in (6, 10):
        store.play = SimpleNamespace(step=step, population=SimpleNamespace(roster=roster))
        metrics = {"student_0/eval/greedy": step / 10}
        Store.keep_best_member(store, SimpleNamespace(evals=[1], metrics=metrics))
    assert kept == [({"student_0": 0.6}, None), ({"student_0": 1.0}, 0.5)]


PAST = ["matchmaking.past_opponent_fraction=0.5", "run.snapshot_every=1"]


def test_past_opponents_come_again_on_resume_and_a_fork_may_do_without_them(tmp_path):
    whole, fork = tmp_path / "whole", tmp_path / "fork"
    assert train(whole, *PAST, "population=1t1s", "run.steps=3") == 0
    parts = shutil.copytree(whole, tmp_path / "parts")
    shutil.rmtree(parts / "checkpoints" / "step_3")
    assert main(["resume", str(parts)]) == 0
    assert records(parts) == records(whole)
    guests = [row.get("past/student", "") for row in RunDirectory(whole).metrics()]
    assert guests[0] == "" and all("@" in name for name in guests[1:])
    without = ["population=1t1s", "run.steps=3", "matchmaking.past_opponent_fraction=0"]
    assert train(fork, f"run.init_from={whole}@2", *without) == 0
    assert "past/student" not in list(RunDirectory(fork).metrics())[2]


def test_past_opponents_need_snapshots_and_students(tmp_path, capsys):
    for typed in (["matchmaking.past_opponent_fraction=0.2"], [*PAST, "population=single"]):
        assert train(tmp_path / "none", *typed) == 2
        assert "run.snapshot_every=10" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        (["run.init_from={finished}"], "run.init_from="),
        (["run.init_from={finished}@3"], "2, 4"),
        (["run.init_from={finished}@4", "run.steps=4"], "run.steps=4"),
        (["run.init_from={finished}@2", "population=1t1s"], "population.teachers=1"),
        (["run.init_from={finished}@2", "base.lora.rank=4"], "base.lora.rank=4"),
        (["run.init_from={finished}@2", "task.buffer_size=9"], "task.buffer_size=9"),
    ],
)
def test_a_fork_that_cannot_be_is_told(finished, tmp_path, capsys, typed, value):
    typed = [text.format(finished=finished) for text in typed]
    assert train(tmp_path / "new", "run.steps=6", *typed) == 2
    assert value in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
