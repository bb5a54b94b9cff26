"""Who is asked, and loading them."""

import json

import needs
import pytest
import torch
from made_up_problems import adapter
from refusals import refuses

from azr_population.bases.nano import nano_base_path
from azr_population.benchmark.targets import find_targets, load_rollout
from azr_population.errors import UserError
from azr_population.weights.peft_folder import load_adapter

BASE = nano_base_path()


def names(path, *more):
    return [target.name for target in find_targets(path, *more)]


def test_members_of_a_run(played):
    assert names(played) == ["base", "student_0", "student_1", "teacher_0"]
    assert len({target.weights for target in find_targets(played)}) == 4


def test_one_member(played, tmp_path):
    for path in (played / "student_1", played / "members/student_1"):
        base, member = find_targets(path)
        assert (base.folder, member.folder) == (None, played / "members/student_1")
    assert names(played / "base") == ["base"]
    assert find_targets("nano")[-1].base == BASE
    with refuses("student_7"):
        find_targets(played / "student_7")


def test_members_of_a_role(played, tmp_path):
    module = needs.module("azr_population.benchmark.benchmark_run", "-e '.[eval]'")
    adapter(tmp_path / "alone/members/agent_0")
    (tmp_path / "alone/config.yaml").write_text("seed: 1\n")

    def chosen(run, members):
        return [target.name for target in module._chosen(find_targets(run), members)]

    assert chosen(played, "students") == ["base", "student_0", "student_1"]
    assert chosen(played, "teachers") == ["base", "teacher_0"]
    for members in ("all", "teachers", "students"):
        assert chosen(tmp_path / "alone", members) == ["base", "agent_0"]
    with refuses("members"):
        chosen(played / "teacher_0", "students")


def test_what_cannot_be_asked(tmp_path, played):
    with refuses(str(tmp_path)):
        find_targets(tmp_path)
    (played / "members/student_1/adapter_model.safetensors").unlink()
    with refuses("student_1"):
        [target.weights for target in find_targets(played)]
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "config.yaml").write_text("seed: 1\n")
    with pytest.raises(UserError):
        find_targets(empty)


def test_a_base_that_is_not_here_or_another_one(tmp_path, played):
    folder = adapter(tmp_path / "mine")
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "someone/some-model"
    (folder / "adapter_config.json").write_text(json.dumps(config))
    with refuses("someone/some-model"):
        find_targets(folder)
    assert find_targets(folder, BASE)[0].base == BASE
    (played / "environment.json").write_text(json.dumps({"base": "0123456789ab"}))
    with refuses("0123456789ab"):
        find_targets(played)


def test_all_adapters_and_the_base_are_one_batch_whatever_their_ranks(played):
    adapter(played / "members/student_9", rank=2)
    targets = find_targets(played)
    loaded = load_rollout(targets)
    assert sorted(loaded.slots.values()) == [0, 1, 2, 3, 4]
    bank = loaded.rollout.bank
    pair = bank.read(loaded.slots[targets[3]]).factors["model.layers.0.self_attn.q_proj"]
    stored = load_adapter(targets[3].folder)
    (factors,) = stored.factors.values()
    torch.testing.assert_close(
        pair.B @ pair.A * bank.spec.scaling, factors.B @ factors.A * stored.spec.scaling
    )
