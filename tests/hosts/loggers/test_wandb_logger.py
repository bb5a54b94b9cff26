"""Weights & Biases offline: what its own file has afterwards."""

import json
import struct

import needs
import pytest

from azr_population.config.load import load_config, to_yaml
from azr_population.hosts.loggers import open_loggers
from azr_population.runs import RunDirectory

wandb = needs.module("wandb", "wandb")


def records(path):
    """The protobuf records of a `.wandb` file, which has LevelDB's log format: blocks of 32 KiB,
    and before every fragment its checksum, length and kind (1 whole, 2 first, 3 middle, 4 last)."""
    from wandb.proto import wandb_internal_pb2

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


def history(path):
    """[(step, figures)] of a file."""
    return [
        (
            record.history.step.num,
            {
                name: json.loads(item.value_json)
                for item in record.history.item
                if (name := item.key or "/".join(item.nested_key)).startswith("eval/")
            },
        )
        for record in records(path)
        if record.WhichOneof("record_type") == "history"
    ]


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Logs steps in a process's worth of a run; returns the notes."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("HOME", str(tmp_path))

    def steps(numbers, resumed=0):
        notes = []
        config = load_config(["logger=wandb", "population=2t2s", "seed=4"])
        (tmp_path / "config.yaml").write_text(to_yaml(config))
        loggers = open_loggers(config.logger, RunDirectory(tmp_path), resumed, notes.append)
        for step in numbers:
            loggers.log(step, {"eval/greedy": step / 10})
        loggers.close()
        # Ends W&B's own process, as the end of ours would: only then is all of its file written.
        wandb.teardown()
        return notes

    return steps


def test_a_resumed_run_keeps_its_id_and_has_no_step_twice(play, tmp_path):
    assert play([1, 2, 3]) == []
    # Killed after step 3, resumed from the checkpoint of step 2.
    assert play([3, 4], resumed=2) == []
    files = sorted((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    assert [step for path in files for step, _ in history(path)] == [1, 2, 3, 4]
    assert history(files[0])[1][1] == {"eval/greedy": 0.2}
    runs = [
        record.run
        for path in files
        for record in records(path)
        if record.WhichOneof("record_type") == "run"
    ]
    state = json.loads((tmp_path / "wandb.json").read_text())
    assert {run.run_id for run in runs} == {state["id"]}
    assert {(run.display_name, run.run_group) for run in runs} == {("2t2s seed 4", "2t2s")}
    assert state["step"] == 4
