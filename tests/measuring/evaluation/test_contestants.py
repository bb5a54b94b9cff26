from __future__ import annotations

import json

import pytest
import torch

from azr_population.bases.nano import nano_base_path
from azr_population.errors import UserError
from azr_population.measuring.evaluation.contestants import entry, named
from azr_population.measuring.evaluation.sampling.rollout_sampler import rollout_samplers
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.peft_folder import save_adapter

BASE = nano_base_path()


def adapter(folder, layer="model.layers.0.self_attn.q_proj", width=128, seed=0):
    random = torch.Generator().manual_seed(seed)
    A, B = (torch.randn(shape, generator=random) for shape in ((4, width), (width, 4)))
    made = Adapter(LoraSpec(4, 8.0, ("q_proj",)), {layer: Factors(A, B)})
    save_adapter(made, folder, str(BASE))
    return folder


@pytest.fixture
def played(tmp_path):
    """A run of four members, student_1 the better student."""
    run = tmp_path / "run"
    for number, name in enumerate(("student_0", "student_1", "teacher_0", "teacher_1")):
        adapter(run / "members" / name, seed=number)
    (run / "config.yaml").write_text("seed: 1\n")
    rated = {f"student_{n}": {"mu": 20.0 + n, "sigma": 1.0} for n in range(2)}
    (run / "metrics.jsonl").write_text(json.dumps({"step": 3, "members": rated}) + "\n")
    return run


def names(found):
    return [one.name for one in found.contestants]


def test_base_is_the_base_alone_of_what_is_named(played, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, given in ((["base", str(played)], None), (["base"], BASE), (["base"], None)):
        (found,) = named(words, "all", given, None)
        assert names(found) == ["base"] and found.base == BASE
    assert len(names(named([str(played)], "all", None, None)[0])) == 5


def test_members_of_a_run(played):
    assert names(entry(played, "all", None, None)) == [
        "base", "student_0", "student_1", "teacher_0", "teacher_1",
    ]  # fmt: skip
    assert names(entry(played, "students", None, None)) == ["base", "student_0", "student_1"]
    assert names(entry(played, "teachers", None, None)) == ["base", "teacher_0", "teacher_1"]
    assert names(entry(played, "best", None, None)) == ["base", "student_1"]
    found = entry(played, "all", None, None)
    assert found.records == played / "evaluation"
    assert len({one.weights for one in found.contestants}) == 5


def test_a_seed_is_called_by_its_arm_too(tmp_path):
    adapter(tmp_path / "4t4s/seed_2/members/agent_0")
    (tmp_path / "4t4s/seed_2/config.yaml").write_text("seed: 1\n")
    assert entry(tmp_path / "4t4s/seed_2", "all", None, None).label == "4t4s_seed_2"


def test_the_single_agent_is_teacher_and_student(tmp_path):
    adapter(tmp_path / "run/members/agent_0")
    (tmp_path / "run/config.yaml").write_text("seed: 1\n")
    for members in ("all", "best", "teachers", "students"):
        assert names(entry(tmp_path / "run", members, None, None)) == ["base", "agent_0"]


def test_a_peft_folder_and_a_base(tmp_path):
    found = entry(adapter(tmp_path / "mine"), "all", None, None)
    assert [(one.name, one.role) for one in found.contestants] == [
        ("base", "base"),
        ("mine", "adapter"),
    ]
    assert names(entry(BASE, "all", None, None)) == ["base"]


def test_what_cannot_be_entered(tmp_path, played):
    with pytest.raises(UserError, match=r"is no run .* no PEFT folder .* and no base"):
        entry(tmp_path, "all", None, None)
    (played / "members/student_1/adapter_model.safetensors").unlink()
    with pytest.raises(UserError, match=r"student_1 has no weights: adapter_model.safetensors"):
        entry(played, "all", None, None)
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "config.yaml").write_text("seed: 1\n")
    with pytest.raises(UserError, match=r"there is no member in"):
        entry(empty, "all", None, None)


def test_a_base_that_is_not_here_or_another_one(tmp_path, played):
    folder = adapter(tmp_path / "mine")
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "someone/some-model"
    (folder / "adapter_config.json").write_text(json.dumps(config))
    said = r"its base someone/some-model is no folder here; .* --base"
    with pytest.raises(UserError, match=said):
        entry(folder, "all", None, None)
    assert entry(folder, "all", BASE, None).base == BASE
    (played / "environment.json").write_text(json.dumps({"base": "0123456789ab"}))
    with pytest.raises(UserError, match=r"played on a base with the hash 0123456789ab"):
        entry(played, "all", None, None)


def test_an_adapter_that_does_not_fit_is_named(tmp_path):
    found = entry(adapter(tmp_path / "mine", width=99), "all", None, None)
    with pytest.raises(UserError, match=r"mine does not fit"):
        list(rollout_samplers(found, found.contestants, "float32", "cpu"))


def test_adapters_of_one_shape_and_the_base_are_one_batch(played):
    found = entry(played, "all", None, None)
    ((sampler, served),) = rollout_samplers(found, found.contestants, "float32", "cpu")
    assert sorted(one.name for one in served) == sorted(names(found))
    assert sorted(sampler.slots.values()) == [0, 1, 2, 3, 4]
