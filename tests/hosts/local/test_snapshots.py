"""Snapshots, permanent checkpoints and past opponents of runs on the nano base."""

import shutil

import pytest
from test_local_run import records, train

from azr_population.cli import main
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import members_digest, steps

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    overrides = [
        "run.save_total_limit=1", "run.permanent_checkpoint_every=2", "run.snapshot_every=2",
    ]  # fmt: skip
    overrides.append("run.snapshot_steps=[0,1,9]")
    assert train(path, "run.steps=4", *overrides) == 0
    return path


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


PAST = ["matchmaking.past_opponent_fraction=0.5", "run.snapshot_every=1"]


def test_past_opponents_come_again_on_resume(tmp_path):
    whole = tmp_path / "whole"
    assert train(whole, *PAST, "population=1t1s", "run.steps=3") == 0
    parts = shutil.copytree(whole, tmp_path / "parts")
    shutil.rmtree(parts / "checkpoints" / "step_3")
    assert main(["resume", str(parts)]) == 0
    assert records(parts) == records(whole)
    guests = [row.get("past/student", "") for row in RunDirectory(whole).metrics()]
    assert guests[0] == "" and all("@" in name for name in guests[1:])


def test_past_opponents_need_snapshots_and_students(tmp_path, capsys):
    for typed in (["matchmaking.past_opponent_fraction=0.2"], [*PAST, "population=single"]):
        assert train(tmp_path / "none", *typed) == 2
        assert "run.snapshot_every=10" in capsys.readouterr().err
