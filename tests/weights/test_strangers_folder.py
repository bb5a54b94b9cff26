"""An adapter folder that somebody sent: whatever is wrong with it is told in one line."""

import json
import os

import pytest
import torch
from safetensors.torch import load_file, save_file

from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.peft_folder import load_adapter, save_adapter

LAYER = "model.layers.0.self_attn.q_proj"


@pytest.fixture
def folder(tmp_path):
    factors = Factors(torch.ones(4, 16), torch.ones(16, 4))
    save_adapter(Adapter(LoraSpec(4, 8.0, ("q_proj",)), {LAYER: factors}), tmp_path / "a", "base")
    return tmp_path / "a"


def edit_config(folder, **fields):
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def edit_weights(folder, edit):
    path = folder / "adapter_model.safetensors"
    save_file({key: edit(key, tensor) for key, tensor in load_file(path).items()}, path)


@pytest.mark.parametrize(
    "fields",
    [
        *({"r": value} for value in (float("nan"), float("inf"), 4.5, "4", 0, -1, True, 10**6)),
        *({"lora_alpha": value} for value in (float("inf"), -1, None, [1], 10**400, 1e7)),
        {"lora_alpha": 1e6, "r": 4},
        *({"target_modules": value} for value in (7, {"a": 1}, ["q_proj", 7])),
        *({name: True} for name in ("use_dora", "use_rslora", "lora_bias", "fan_in_fan_out")),
        *({name: True} for name in ("use_qalora", "arrow_config", "a_variant_of_tomorrow")),
        *({name: {"q_proj": 2}} for name in ("rank_pattern", "kasa_config", "velora_config")),
        {"monteclora_config": {"num_samples": 4}},
        {"layer_replication": [[0, 2]]},
        {"use_dora": "false"},
        *({"bias": "all"}, {"peft_type": "IA3"}),
    ],
    ids=lambda fields: "_".join(fields),
)
def test_a_configuration_that_no_adapter_can_have(folder, fields):
    edit_config(folder, **fields)
    with pytest.raises(UserError) as caught:
        load_adapter(folder)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 500 and next(iter(fields)) in message


@pytest.mark.parametrize(
    "edit",
    [
        lambda key, tensor: torch.full_like(tensor, float("nan")),
        lambda key, tensor: torch.full_like(tensor, float("-inf")),
        lambda key, tensor: torch.full_like(tensor.double(), 1e308),
        lambda key, tensor: tensor * 1e5,
        lambda key, tensor: tensor[:0].contiguous(),
        lambda key, tensor: tensor[:, :0].contiguous(),
        lambda key, tensor: tensor[None],
        lambda key, tensor: tensor[:2].contiguous() if "lora_A" in key else tensor,
        lambda key, tensor: tensor.to(torch.int8),
        lambda key, tensor: tensor.to(torch.float8_e4m3fn),
        lambda key, tensor: tensor.to(torch.complex64),
    ],
)
def test_weights_that_no_training_comes_to(folder, edit):
    edit_weights(folder, edit)
    with pytest.raises(UserError) as caught:
        load_adapter(folder)
    assert "\n" not in str(caught.value) and str(folder) in str(caught.value)


def test_json_nested_too_deep(folder):
    (folder / "adapter_config.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(UserError):
        load_adapter(folder)


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapter_config.json"])
def test_a_pipe_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(UserError):
        load_adapter(folder)


def test_fields_that_change_nothing_are_taken_and_names_that_match_nothing_are_left_out(folder):
    edit_config(
        folder,
        peft_version="0.21.2",
        qalora_group_size=16,
        layers_to_transform=[0],
        kasa_config=None,
        rank_pattern={},
        use_a_variant_of_tomorrow=False,
        target_modules=["q_proj", "v_porj"],
    )
    assert load_adapter(folder).spec == LoraSpec(4, 8.0, ("q_proj",))
