import hashlib
import json
import os

import pytest
import torch
from refusals import refuses

from azr_population.runs.checkpoint import (
    load_latest,
    members_digest,
    read_tensors,
    save_checkpoint,
    steps,
)
from azr_population.streams import Streams

FILES = ("state.pt", "state.json")


def save(folder, step, keep=2):
    return save_checkpoint(folder, step, {"w": torch.full((3,), float(step))}, {"n": step}, keep)


def test_the_newest_comes_back_and_only_so_many_are_kept(tmp_path):
    for step in (0, 5, 10):
        save(tmp_path, step)
    checkpoint = load_latest(tmp_path)
    assert (checkpoint.step, checkpoint.plain, checkpoint.skipped) == (10, {"n": 10}, ())
    assert torch.equal(checkpoint.tensors["w"], torch.full((3,), 10.0))
    assert [step for step, _ in steps(tmp_path)] == [5, 10]


@pytest.mark.parametrize("name", ["state.pt", "state.json", "manifest.json"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, name):
    save(tmp_path, 5)
    path = save(tmp_path, 10) / name
    path.write_bytes(path.read_bytes()[:-5])
    checkpoint = load_latest(tmp_path)
    assert checkpoint.step == 5
    assert checkpoint.skipped[0].startswith("step_10 (")


@pytest.mark.parametrize(
    "fault", [OSError(24, "Too many open files"), OSError(116, "Stale file handle"), MemoryError()]
)
def test_a_fault_that_may_pass_makes_no_checkpoint_damaged(tmp_path, monkeypatch, fault):
    """Or its run would go back, and its records would be cut."""

    def fail(path):
        raise fault

    save(tmp_path, 5)
    save(tmp_path, 10)
    monkeypatch.setattr("azr_population.runs.checkpoint._digest", fail)
    with refuses("step_10 cannot be read now"):
        load_latest(tmp_path)


def test_a_damaged_checkpoint_is_put_aside_each_time(tmp_path):
    for _ in range(2):
        save(tmp_path, 5)
        save(tmp_path, 10)
    save(tmp_path, 7)
    save(tmp_path, 10)
    save(tmp_path, 7)
    assert [step for step, _ in steps(tmp_path)] == [7]


def test_who_found_it_sound_hashes_it_for_all(tmp_path, monkeypatch):
    file = save(tmp_path, 5) / "state.pt"
    before = file.read_bytes()
    assert torch.equal(load_latest(tmp_path, mapped=True).tensors["w"], torch.full((3,), 5.0))
    monkeypatch.setattr("azr_population.runs.checkpoint._digest", None)
    mapped = read_tensors(tmp_path, 5, mapped=True)["w"]
    assert torch.equal(mapped, torch.full((3,), 5.0))
    mapped += 1
    assert file.read_bytes() == before


def test_an_unfinished_checkpoint_does_not_count(tmp_path):
    save(tmp_path, 5)
    (tmp_path / ".step_10.tmp").mkdir()
    assert load_latest(tmp_path).step == 5
    assert save(tmp_path, 10).name == "step_10"


def test_without_any_sound_checkpoint_the_way_out_is_named(tmp_path):
    with refuses("run.dir"):
        load_latest(tmp_path)


def test_the_digest_sees_every_byte_and_the_names(tmp_path):
    def digest(name, content):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "adapter_model.safetensors").write_bytes(content)
        return members_digest(tmp_path)

    first = digest("teacher_0", b"abc")
    assert digest("teacher_0", b"abd") != first
    assert digest("teacher_0", b"abc") == first
    assert digest("student_0", b"abc") != first


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.pt", b"no pickle"),
        ("state.pt", b""),
        ("state.json", b"[" * 100_000),
        ("state.json", b"\xff"),
    ],
)
def test_damage_under_a_mended_manifest_counts_as_damage(tmp_path, name, content):
    save(tmp_path, 5)
    folder = save(tmp_path, 10)
    (folder / name).write_bytes(content)
    sums = {path: hashlib.sha256((folder / path).read_bytes()).hexdigest() for path in FILES}
    (folder / "manifest.json").write_text(json.dumps(sums))
    checkpoint = load_latest(tmp_path)
    assert checkpoint.step == 5 and checkpoint.skipped[0].startswith("step_10 (")


def test_a_pipe_is_not_waited_for(tmp_path):
    save(tmp_path, 5)
    path = save(tmp_path, 10) / "state.pt"
    path.unlink()
    os.mkfifo(path)
    assert load_latest(tmp_path).step == 5


def test_a_stream_depends_on_seed_step_and_purpose_alone():
    def draw(seed, purpose, step):
        streams = Streams(seed)
        streams.torch("something else", 9)
        return (
            torch.rand(1, generator=streams.torch(purpose, step)).item(),
            streams.numpy(purpose, step).random(),
        )

    assert draw(1, "solve", 3) == draw(1, "solve", 3)
    others = [draw(2, "solve", 3), draw(1, "propose", 3), draw(1, "solve", 4)]
    assert draw(1, "solve", 3) not in others and len(set(others)) == 3
