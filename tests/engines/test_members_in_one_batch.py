"""Sampling many members at once, held against plain forwards of transformers, one row at a time."""

from itertools import chain

import pytest
import torch
from transformers import AutoModelForCausalLM, GPT2Config, MistralConfig, Qwen2Config

from azr_population.engines import decoding
from azr_population.engines.canary import random_adapter
from azr_population.engines.engine import NO_ADAPTER, Sampling
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.weights.adapter import LoraSpec

SIZES = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "initializer_range": 0.1}  # fmt: skip
BASES = {
    "grouped": Qwen2Config(**SIZES, num_key_value_heads=2),
    "each head": Qwen2Config(**SIZES, num_key_value_heads=4),
    "sliding window": MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=6),
    "gpt2": GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=64, n_positions=64),
}
PROMPTS = [[3 + (5 * row + place) % 60 for place in range(1 + 7 * row % 19)] for row in range(16)]
LIMITS = tuple(5 + 3 * (row % 7) for row in range(16))


def made(kind, members=8):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(BASES[kind]).eval()
    seeds = [torch.Generator().manual_seed(slot) for slot in range(members)]
    bank = make_bank(model, LoraSpec(4, 8.0), seeds)
    for slot in range(members):
        bank.write(slot, random_adapter(bank.read(slot), slot))
    return model, bank


def slots_of(members):
    """Of 16 rows, each member's neighbours; without members the bare base."""
    return [row * members // 16 for row in range(16)] if members else [NO_ADAPTER] * 16


def scored(model, bank, done):
    ids = torch.tensor([done.prompt_ids + done.token_ids])
    with torch.inference_mode(), bank.adapters_active(torch.tensor([done.slot])):
        scores = model(ids, use_cache=False).logits[0, :-1].log_softmax(-1)
    return scores.gather(1, ids[0, 1:, None])[len(done.prompt_ids) - 1 :, 0].tolist()


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("members", [0, 1, 8])
@pytest.mark.parametrize(("n", "share"), [(1, False), (3, False), (3, True)])
def test_log_probabilities_are_those_of_a_plain_forward(kind, members, n, share, monkeypatch):
    # Prompts are read in several parts, the longest of which has padding.
    monkeypatch.setattr(decoding, "PREFILL_TOKENS", 60)
    model, bank = made(kind)
    rollout = TorchRollout(model, bank, frozenset(range(1, 12)), share_prefix=share)
    groups = rollout.generate(PROMPTS, slots_of(members), Sampling(LIMITS, n=n), 1)
    rows = [done for group in groups for done in group]
    assert len({len(done.token_ids) for done in rows}) > 5
    for done in rows:
        assert done.logprobs == pytest.approx(scored(model, bank, done), abs=5e-6)


def test_greedy_rows_take_the_likeliest_token_until_one_that_stops():
    model, bank = made("grouped")
    stops = frozenset(range(1, 12))
    sampling = Sampling(LIMITS, temperature=0)
    groups = TorchRollout(model, bank, stops).generate(PROMPTS, slots_of(8), sampling, 1)
    for (done,), limit in zip(groups, LIMITS, strict=True):
        ids, prompt = [*done.prompt_ids, *done.token_ids], len(done.prompt_ids)
        with torch.inference_mode(), bank.adapters_active([done.slot]):
            likeliest = model(torch.tensor([ids]), use_cache=False).logits[0].argmax(-1).tolist()
        assert likeliest[prompt - 1 : -1] == list(done.token_ids)
        assert done.finished == (done.token_ids[-1] in stops)
        assert done.finished or len(done.token_ids) == limit
        assert not stops & {*done.token_ids[:-1]}
    assert len({done.finished for (done,) in groups}) == 2


def test_what_is_asked_rarely_changes_no_completion(monkeypatch):
    model, bank = made("grouped")
    rollout = TorchRollout(model, bank, frozenset(range(1, 12)))
    often = rollout.generate(PROMPTS, slots_of(8), Sampling(LIMITS, n=2), 1)
    monkeypatch.setattr(decoding, "_CHECK_EVERY", (8, 8))
    rarely = rollout.generate(PROMPTS, slots_of(8), Sampling(LIMITS, n=2), 1)
    for ours, theirs in zip(chain(*rarely), chain(*often), strict=True):
        assert ours.token_ids == theirs.token_ids and ours.finished == theirs.finished
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=5e-6)
