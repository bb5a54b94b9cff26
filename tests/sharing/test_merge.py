"""A merged member is the base with its adapter."""

import torch
from random_adapters import loud
from refusals import refuses

from azr_population.bases.nano import nano_base_path
from azr_population.cli import main
from azr_population.engines.base_model import load_base
from azr_population.eval.members import StoredMember
from azr_population.sharing.merge import _compared, merge
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank
from azr_population.weights.peft_folder import save_adapter


def test_a_merged_member_has_the_logits_of_base_and_adapter(tmp_path, capsys):
    model, tokenizer = load_base(nano_base_path(), "float32", "cpu")
    bank = Bank(model, LoraSpec(4, 8.0), 1)
    bank.write(0, loud(bank.read(0), 3))
    save_adapter(bank.read(0), tmp_path / "member", str(nano_base_path()))
    ids = torch.arange(5, 60)[None]
    with torch.inference_mode(), bank.adapters_active(torch.tensor([0])):
        expected, bare = model(ids).logits, None
    with torch.inference_mode():
        bare = model(ids).logits
    assert main(["export", str(tmp_path / "member"), "--merged", str(tmp_path / "model")]) == 0
    assert "member merged into its base" in capsys.readouterr().out
    merged, again = load_base(tmp_path / "model", "float32", "cpu")
    with torch.inference_mode():
        logits = merged(ids).logits
    # Weights are rounded once to the base's bfloat16, and so are the logits' differences.
    rounding = float((logits - expected).abs().max())
    assert rounding < 0.2 and 20 * rounding < float((logits - bare).abs().max())
    layers = dict(model.named_modules())
    for name, pair in bank.read(0).factors.items():
        whole = layers[name].weight + 2.0 * pair.B @ pair.A
        found = merged.get_submodule(name).weight
        assert torch.equal(found, whole.bfloat16().float()), name
    assert again("<PO>def f")["input_ids"] == tokenizer("<PO>def f")["input_ids"]
    assert merged.generation_config.eos_token_id == model.generation_config.eos_token_id
    with refuses("--merged"):
        merge(str(tmp_path / "member"), tmp_path / "model")
    assert main(["export", str(tmp_path / "member")]) == 2


def test_the_merged_folder_is_checked_against_base_and_adapter(tmp_path, capsys, monkeypatch):
    model, _ = load_base(nano_base_path(), "float32", "cpu")
    bank = Bank(model, LoraSpec(4, 8.0), 1)
    save_adapter(loud(bank.read(0), 3), tmp_path / "member", str(nano_base_path()))
    typed = ["export", str(tmp_path / "member"), "--check", "--merged"]
    assert main([*typed, str(tmp_path / "model")]) == 0
    assert "nats a token from base and adapter" in capsys.readouterr().out
    other = loud(bank.read(0), 4)
    monkeypatch.setattr("azr_population.eval.members.StoredMember.adapter", lambda member: other)
    member = StoredMember("member", nano_base_path(), tmp_path / "member")
    with refuses("is not base and adapter"):
        _compared(tmp_path / "model", member, "bfloat16")


def test_a_layer_that_is_the_embeddings_too_is_not_merged(tmp_path):
    """The nano base's head is: with the adapter's update the embeddings would have it as well."""
    model, _ = load_base(nano_base_path(), "float32", "cpu")
    bank = Bank(model, LoraSpec(4, 8.0, ("lm_head",)), 1)
    save_adapter(loud(bank.read(0), 3), tmp_path / "member", str(nano_base_path()))
    with refuses("lm_head"):
        merge(str(tmp_path / "member"), tmp_path / "model")
    assert not (tmp_path / "model").exists()
