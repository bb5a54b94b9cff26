"""How a base is told from another one, and how it lies in memory once it is loaded."""

import json

import pytest
import torch
from refusals import refuses
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from azr_population.engines.base_model import (
    _SAMPLE_BYTES,
    fingerprint,
    load_base,
    stop_ids,
)
from azr_population.sharing.merge import merge
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank
from azr_population.weights.peft_folder import save_adapter


@pytest.fixture
def copies(tmp_path):
    """Two folders with the same weights, larger than what is sampled of them."""
    weights = bytes(range(256)) * (_SAMPLE_BYTES // 64)
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(weights)
    return tmp_path


@pytest.mark.parametrize("place", [0, -1])
def test_other_weights_have_another(copies, place):
    path = copies / "b" / "model.safetensors"
    changed = bytearray(path.read_bytes())
    changed[place] ^= 1
    path.write_bytes(changed)
    assert fingerprint(copies / "a") != fingerprint(copies / "b")


def addresses(model):
    """Where the parameters lie, in bytes after a multiple of 64."""
    return {parameter.data_ptr() % 64 for parameter in model.parameters()}


@pytest.fixture
def unaligned(tmp_path, model, engine):
    """A base's folder whose weights start 8 bytes after a multiple of 64 in their file."""
    model.save_pretrained(tmp_path)
    engine.tokenizer.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    content = file.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = content[8:end].rstrip()
    header += b" " * (-len(header) % 64)
    file.write_bytes(len(header).to_bytes(8, "little") + header + content[end:])
    return tmp_path


def test_weights_that_a_file_keeps_at_odd_addresses_are_aligned(unaligned, model):
    assert addresses(AutoModelForCausalLM.from_pretrained(unaligned)) == {8}
    loaded, _ = load_base(unaligned, "float32", "cpu")
    assert addresses(loaded) == {0}
    saved = model.state_dict()
    assert all(torch.equal(tensor, saved[name]) for name, tensor in loaded.state_dict().items())


TURNS = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


@pytest.mark.parametrize(
    ("template", "special", "ends"),
    [
        (TURNS, True, {1, 39}),
        (TURNS, False, {1}),
        (None, True, {1}),
        (TURNS.replace("<end_of_turn>\n", ""), True, {1}),
        (TURNS.replace("{{ m['role'] }}", "{{ raise_exception('no') }}"), True, {1}),
    ],
)
def test_a_completion_ends_with_the_token_that_ends_a_turn(engine, model, template, special, ends):
    tokenizer = engine.tokenizer
    tokenizer.add_tokens(["<end_of_turn>"], special_tokens=special)
    tokenizer.chat_template = template
    assert stop_ids(model, tokenizer) == ends
    assert stop_ids(model, tokenizer, chat=False) == {1}


@pytest.mark.parametrize("special", [True, False])
def test_a_tokenizer_with_tokens_beyond_the_embedding_is_refused(tmp_path, engine, model, special):
    model.save_pretrained(tmp_path)
    # One for padding comes from no text.
    engine.tokenizer.add_tokens(["word"], special_tokens=special)
    engine.tokenizer.save_pretrained(tmp_path)
    if special:
        load_base(tmp_path, "float32", "cpu")
    else:
        with refuses("base.path"):
            load_base(tmp_path, "float32", "cpu")


def test_a_base_is_trained_without_dropout_and_keeps_its_own_when_merged(tmp_path, engine, capsys):
    """GPT-2 has .1 by default, and gradient checkpointing needs the training mode."""
    torch.manual_seed(1)
    size = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 39, "n_positions": 64}
    GPT2LMHeadModel(GPT2Config(**size, eos_token_id=1)).save_pretrained(tmp_path / "base")
    engine.tokenizer.save_pretrained(tmp_path / "base")
    model, _ = load_base(tmp_path / "base", "float32", "cpu")
    model.train()
    ids = torch.arange(2, 30)[None]
    assert torch.equal(model(ids).logits, model(ids).logits)
    bank = Bank(model, LoraSpec(4, 8.0), 1)
    save_adapter(bank.read(0), tmp_path / "member", str(tmp_path / "base"))
    merge(str(tmp_path / "member"), tmp_path / "merged")
    fields = json.loads((tmp_path / "merged" / "config.json").read_text())
    assert fields["resid_pdrop"] == fields["attn_pdrop"] == fields["embd_pdrop"] == 0.1
