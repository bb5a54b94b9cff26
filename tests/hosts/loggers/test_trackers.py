"""What TensorBoard, Weights & Biases (offline) and trackio themselves have afterwards."""

import json
import struct
import sys

import needs
import pytest
from small_run import SMALL

from azr_population.cli import main
from azr_population.config.load import load_config, to_yaml
from azr_population.hosts.loggers import open_loggers
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import members_digest


def events(folder):
    """What the TensorBoard server has."""
    accumulator = needs.module(
        "tensorboard.backend.event_processing.event_accumulator", "tensorboard"
    )
    return accumulator.EventAccumulator(str(folder / "tensorboard")).Reload()


def tensorboard(folder):
    return [(event.step, event.value) for event in events(folder).Scalars("eval/greedy")]


def wandb_records(folder):
    """The protobuf records of `.wandb` files, which have LevelDB's log format: blocks of 32 KiB,
    and before every fragment its checksum, length and kind (1 whole, 2 first, 3 middle, 4 last)."""
    from wandb.proto import wandb_internal_pb2

    # Ends W&B's own process, as the end of ours would: only then is all of its file written.
    needs.module("wandb", "wandb").teardown()
    for path in sorted((folder / "wandb").glob("offline-run-*/*.wandb")):
        data, at, parts = path.read_bytes(), 7, b""
        while at + 7 <= len(data):
            left = 32768 - at % 32768
            if left < 7:
                at += left
                continue
            _, size, kind = struct.unpack("<IHB", data[at : at + 7])
            parts += data[at + 7 : at + 7 + size]
            at += 7 + size
            if kind in (1, 4):
                record = wandb_internal_pb2.Record()
                record.ParseFromString(parts)
                yield record
                parts = b""


def wandb(folder):
    lines = [
        record.history
        for record in wandb_records(folder)
        if record.WhichOneof("record_type") == "history"
    ]
    return [
        (line.step.num, json.loads(item.value_json))
        for line in lines
        for item in line.item
        if (item.key or "/".join(item.nested_key)) == "eval/greedy"
    ]


def trackio(folder):
    from trackio.sqlite_storage import SQLiteStorage

    (name,) = SQLiteStorage.get_runs("p")
    assert name.startswith("2t2s-seed-4-")
    return [(row["step"], row["eval/greedy"]) for row in SQLiteStorage.get_logs("p", name)]


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Logs steps in a process's worth of a run; returns the notes."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("TRACKIO_PROJECT", "p")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))

    def steps(name, figures, resumed=0):
        needs.module(name, name)
        if name == "trackio":  # its modules may have taken the folder for another test
            from trackio import sqlite_storage, utils  # noqa: F401

            for key, module in list(sys.modules.items()):
                if key.startswith("trackio.") and hasattr(module, "TRACKIO_DIR"):
                    monkeypatch.setattr(module, "TRACKIO_DIR", tmp_path / "trackio")
        notes = []
        config = load_config([f"logger={name}", "population=2t2s", "seed=4"])
        (tmp_path / "config.yaml").write_text(to_yaml(config))
        loggers = open_loggers(config.logger.names, RunDirectory(tmp_path), resumed, notes.append)
        for step, value in figures.items():
            loggers.log(step, {"eval/greedy": value})
        loggers.close()
        if name == "wandb":
            # W&B names a folder by the second, and both are made within one on a fast machine.
            needs.module("wandb", "wandb").teardown()
            for made in (tmp_path / "wandb").glob("offline-run-2*"):
                made.rename(made.with_name(made.name.replace("run-", f"run-after-{resumed}-", 1)))
        return notes

    return steps


@pytest.mark.parametrize("read", [tensorboard, wandb, trackio], ids=lambda read: read.__name__)
def test_a_resumed_run_is_one_run_with_every_step_once(play, tmp_path, read):
    assert play(read.__name__, {1: 1.0, 2: 2.0, 3: 3.0}) == []
    # Killed after step 3, resumed from the checkpoint of step 2.
    assert play(read.__name__, {3: 3.0, 4: 4.0}, resumed=2) == []
    assert read(tmp_path) == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)]


def test_a_run_of_wandb_has_the_name_and_the_group_of_the_population(play, tmp_path):
    for resumed in (0, 1):
        play("wandb", {resumed + 1: 1.0}, resumed)
    runs = [
        record.run
        for record in wandb_records(tmp_path)
        if record.WhichOneof("record_type") == "run"
    ]
    state = json.loads((tmp_path / "wandb.json").read_text())
    assert {run.run_id for run in runs} == {state["id"]} and state["step"] == 2
    assert {(run.display_name, run.run_group) for run in runs} == {("2t2s seed 4", "2t2s")}


def test_a_folder_that_cannot_be_written_stops_nothing(play, tmp_path):
    (tmp_path / "tensorboard").write_text("in the way")
    (note,) = play("tensorboard", {})
    assert "tensorboard" in note


@pytest.mark.integration
def test_a_logger_does_not_change_what_is_played(small_run, tmp_path):
    typed = [*SMALL, f"run.dir={tmp_path / 'run'}", "logger=tensorboard"]
    assert main(["train", *typed, "run.steps=1"]) == 0
    assert main(["resume", str(tmp_path / "run"), "run.steps=2"]) == 0
    digests = [members_digest(run / "members") for run in (tmp_path / "run", small_run)]
    assert digests[0] == digests[1]
    logged = events(tmp_path / "run")
    assert [event.step for event in logged.Scalars("time/step")] == [1, 2]
    assert {"teacher/valid_frac", "student_0/mu"} <= set(logged.Tags()["scalars"])
