"""Founders from PEFT folders: exactly their dW, or a clear refusal."""

import pytest
import torch
from refusals import refuses

from azr_population.config.schema import MembersConfig
from azr_population.method.members import Roster
from azr_population.method.population import founder_sources
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.founders import check_founders, load_founder
from azr_population.weights.peft_folder import save_adapter

SHAPES = {"model.q_proj": (6, 5), "model.up_proj": (9, 5)}


def adapter(rank, alpha=16.0, shapes=SHAPES, fresh=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    factors = {
        name: Factors(
            torch.randn(rank, inputs, generator=generator),
            torch.randn(outputs, rank, generator=generator) * (not fresh),
        )
        for name, (outputs, inputs) in shapes.items()
    }
    return Adapter(LoraSpec(rank, alpha, ("q_proj", "up_proj")), factors)


def updates(adapter):
    return {name: adapter.spec.scaling * pair.B @ pair.A for name, pair in adapter.factors.items()}


@pytest.mark.parametrize("rank", [4, 7])
def test_a_founder_has_the_adapters_update_at_any_higher_rank(tmp_path, rank):
    trained = adapter(4)
    save_adapter(trained, tmp_path / "trained", "base")
    fresh = adapter(rank, alpha=8.0, fresh=True, seed=1)
    founder = load_founder(str(tmp_path / "trained"), fresh, torch.Generator().manual_seed(0))
    assert founder.spec == fresh.spec
    for name, update in updates(founder).items():
        torch.testing.assert_close(update, updates(trained)[name])


def test_a_founder_has_the_runs_dtype_and_is_scaled_in_it(tmp_path):
    rounded = adapter(4).map(torch.Tensor.bfloat16)
    save_adapter(rounded, tmp_path / "half", "base")
    fresh = adapter(4, alpha=12.0, fresh=True, seed=1)
    founder = load_founder(str(tmp_path / "half"), fresh, torch.Generator())
    expected = updates(rounded.map(torch.Tensor.float))
    for name, update in updates(founder).items():
        torch.testing.assert_close(update, expected[name])


def test_layers_that_the_adapter_leaves_alone_stay_fresh(tmp_path):
    trained = adapter(4, shapes={"model.up_proj": (9, 5)})
    save_adapter(trained, tmp_path / "trained", "base")
    fresh = adapter(4, fresh=True, seed=1)
    founder = load_founder(str(tmp_path / "trained"), fresh, torch.Generator())
    assert list(founder.factors) == list(SHAPES)
    assert founder.factors["model.q_proj"] is fresh.factors["model.q_proj"]
    assert founder.factors["model.up_proj"].B.equal(trained.factors["model.up_proj"].B)


def test_a_runs_member_is_named_as_elsewhere(tmp_path):
    save_adapter(adapter(4), tmp_path / "members" / "student_0", "base")
    (tmp_path / "config.yaml").touch()
    check_founders([str(tmp_path / "student_0")], 4)
    # A stored configuration beside an adapter makes no run of the folder.
    save_adapter(adapter(4), tmp_path / "mine", "base")
    check_founders([str(tmp_path / "mine")], 4)
    with refuses("~no-such-user/mine"):
        check_founders(["~no-such-user/mine"], 4)


def test_a_founder_comes_from_the_hub(tmp_path, monkeypatch):
    save_adapter(adapter(4), tmp_path / "cached", "base")
    asked = []

    def downloaded(name, allow_patterns):
        asked.append(name)
        if name == "me/gone":
            raise OSError("no such repository")
        return str(tmp_path / "cached")

    monkeypatch.setattr("huggingface_hub.snapshot_download", downloaded)
    check_founders(["me/mine"], 4)
    with refuses("me/gone"):
        check_founders(["me/gone"], 4)
    assert asked == ["me/mine", "me/gone"]


@pytest.mark.parametrize(
    "shapes",
    [{"model.down_proj": (6, 5)}, {"model.q_proj": (6, 4)}],
    ids=["another layer", "another base"],
)
def test_an_adapter_that_does_not_fit_is_refused(tmp_path, shapes):
    save_adapter(adapter(4, shapes=shapes), tmp_path / "odd", "base")
    with refuses("odd"):
        load_founder(str(tmp_path / "odd"), adapter(4, fresh=True), torch.Generator())


def test_a_higher_rank_is_refused_before_weights_are_read(tmp_path):
    save_adapter(adapter(4), tmp_path / "wide", "base")
    (tmp_path / "wide" / "adapter_model.safetensors").unlink()
    with refuses("rank 4"):
        check_founders([str(tmp_path / "wide")], 2)


def test_one_adapter_serves_a_role_and_several_each_member():
    roster = Roster.make(2, 2)
    chosen = founder_sources(
        MembersConfig(init_from={"teacher": "a", "student": ["b", "c"]}).init_from, roster
    )
    assert chosen == {"teacher_0": "a", "teacher_1": "a", "student_0": "b", "student_1": "c"}
    assert founder_sources(MembersConfig().init_from, roster) == {}


@pytest.mark.parametrize(("role", "adapters"), [("student", ["a"] * 3), ("agent", "a")])
def test_another_number_or_role_than_there_is_is_refused(role, adapters):
    with refuses(f"population.init_from.{role}"):
        founder_sources(MembersConfig(init_from={role: adapters}).init_from, Roster.make(2, 2))
