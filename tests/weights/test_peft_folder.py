import errno
import json
import os
from dataclasses import replace

import peft
import pytest
import torch
from refusals import refuses
from tiny_models import qwen2

from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.bank import Bank
from azr_population.weights.model_card import base_name
from azr_population.weights.peft_folder import load_adapter, save_adapter


def adapter_of(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    factors = {
        f"model.layers.{layer}.{name}": Factors(
            torch.randn(4, 6, generator=generator).to(dtype),
            torch.randn(5, 4, generator=generator).to(dtype),
        )
        for layer in range(2)
        for name in ("self_attn.q_proj", "mlp.up_proj")
    }
    return Adapter(LoraSpec(rank=4, alpha=8.0), factors)


def test_members_load_in_peft_and_peft_members_load_here_bit_for_bit(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # PEFT would look for the base's vocabulary
    bank = Bank(qwen2(), LoraSpec(rank=4), 1)
    bank.init_member(0, torch.Generator().manual_seed(0))
    with torch.no_grad():
        for factor in bank.parameters_of(0)[1::2]:
            factor.normal_(generator=torch.Generator().manual_seed(1))
    mine = bank.read(0)
    save_adapter(mine, tmp_path / "mine", "some/base")
    model = peft.PeftModel.from_pretrained(qwen2(), str(tmp_path / "mine"))
    state = peft.get_peft_model_state_dict(model)
    assert len(state) == 2 * len(mine.factors)
    for name, pair in mine.factors.items():
        assert torch.equal(state[f"base_model.model.{name}.lora_A.weight"], pair.A)
        assert torch.equal(state[f"base_model.model.{name}.lora_B.weight"], pair.B)
    model.save_pretrained(str(tmp_path / "peft"), save_embedding_layers=False)
    back = load_adapter(tmp_path / "peft")
    assert back.spec.rank == 4 and back.spec.alpha == 16.0
    assert back.factors.keys() == mine.factors.keys()
    for name, pair in mine.factors.items():
        assert torch.equal(back.factors[name].A, pair.A)
        assert torch.equal(back.factors[name].B, pair.B)
    bank.write(0, back)


@pytest.mark.parametrize(
    ("start", "fits"),
    [(True, 1), (False, 1), ("gaussian", 1), ("eva", 1), ("orthogonal", 1), ("pissa", 0)]
    + [(start, 0) for start in ("pissa_niter_16", "olora", "corda", "loftq", "lora_ga", "new")],
)
def test_an_adapter_that_needs_a_changed_base_is_refused(tmp_path, start, fits):
    save_adapter(adapter_of(), tmp_path / "a", "base")
    file = tmp_path / "a" / "adapter_config.json"
    written = json.loads(file.read_text()) | {"init_lora_weights": start, "eva_config": {"rho": 2}}
    file.write_text(json.dumps(written))
    if fits:
        assert load_adapter(tmp_path / "a").spec.rank == 4
    else:
        with refuses(f"init_lora_weights={start}"):
            load_adapter(tmp_path / "a")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_round_trip_keeps_bits_and_dtype(tmp_path, dtype):
    adapter = adapter_of(dtype)
    save_adapter(adapter, tmp_path / "a", "base")
    back = load_adapter(tmp_path / "a")
    assert back.spec == LoraSpec(4, 8.0, ("q_proj", "up_proj"))
    assert back.factors.keys() == adapter.factors.keys()
    for name, pair in adapter.factors.items():
        assert back.factors[name].A.dtype == dtype
        assert torch.equal(back.factors[name].A, pair.A)
        assert torch.equal(back.factors[name].B, pair.B)


def test_an_alpha_that_is_no_whole_number_is_kept(tmp_path):
    save_adapter(replace(adapter_of(), spec=LoraSpec(4, 2.5)), tmp_path / "a", "base")
    assert load_adapter(tmp_path / "a").spec.alpha == 2.5


def test_what_is_written_for_readers_vllm_and_other_users(tmp_path):
    folder = tmp_path / "a"
    save_adapter(adapter_of(), folder, "my/base", {"operator": "dare", "seed": 3})
    text = (folder / "README.md").read_text()
    assert 'base_model: "my/base"' in text and 'base = "my/base"' in text
    assert "- operator: dare\n- seed: 3\n" in text
    config = json.loads((folder / "adapter_config.json").read_text())
    assert config["target_modules"] == ["q_proj", "up_proj"]
    assert config["lora_alpha"] == 8 and isinstance(config["lora_alpha"], int)
    # Who may read the configuration may read the weights.
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1


@pytest.mark.parametrize(
    ("base", "name"),
    [
        ("/home/me/secret/models/coder", "coder"),
        ("./bases/smollm2", "smollm2"),
        ("~/models/coder/", "coder"),
        ("Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-0.5B"),
        ("/usr/lib/python3/azr_population/bases/nano/weights", "nano"),
    ],
)
def test_a_card_names_the_base_and_not_its_path(tmp_path, base, name):
    save_adapter(adapter_of(), tmp_path / "a", base)
    text = (tmp_path / "a" / "README.md").read_text()
    assert base_name(base) == name and ("nano_base_path()" if name == "nano" else name) in text
    # The Hub takes what stands there for a repository.
    assert ("base_model:" in text) == ("/" in name)
    assert ("/home" not in text) and ("/usr" not in text) and ("bases/" not in text)


def test_an_existing_folder_is_kept(tmp_path):
    save_adapter(adapter_of(), tmp_path / "a", "first")
    with pytest.raises(UserError):
        save_adapter(adapter_of(), tmp_path / "a", "second")
    assert "first" in (tmp_path / "a" / "README.md").read_text()
    assert os.listdir(tmp_path) == ["a"]


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("azr_population.weights.peft_folder.save_file", full)
    with pytest.raises(UserError):
        save_adapter(adapter_of(), tmp_path / "a", "base")
    assert os.listdir(tmp_path) == []


def test_a_file_system_without_rights_takes_members(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    save_adapter(adapter_of(), tmp_path / "member", "base")
    assert load_adapter(tmp_path / "member")


def test_damaged_and_missing_files(tmp_path):
    with refuses("adapter_config.json"):
        load_adapter(tmp_path / "nowhere")
    folder = tmp_path / "a"
    save_adapter(adapter_of(), folder, "base")
    weights = folder / "adapter_model.safetensors"
    content = weights.read_bytes()
    for length in (0, 4, 100, len(content) - 1):
        weights.write_bytes(content[:length])
        with refuses("adapter_model.safetensors"):
            load_adapter(folder)
    weights.unlink()
    with refuses("adapter_model.safetensors"):
        load_adapter(folder)
