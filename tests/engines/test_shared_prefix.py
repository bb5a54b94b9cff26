"""A prompt that is computed once for all its completions changes nothing but rounding."""

from types import SimpleNamespace

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, MistralConfig, MistralForCausalLM

from azr_population.engines import shared_prefix, torch_rollout
from azr_population.engines.decoding import decode
from azr_population.engines.engine import Hyperparameters, Sampling, TrainingSample
from azr_population.engines.shared_prefix import use_own_attention
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank

PROMPTS = ["abc de fgh", "hello", "x", "a longer prompt 12"]
SLOTS = [0, 0, 1, 2]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 40}


def made(kind):
    torch.manual_seed(0)
    if kind == "gpt2":
        config = GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=40, n_positions=64)
        model = GPT2LMHeadModel(config)
    else:
        window = 4 if kind == "sliding" else None
        config = MistralConfig(
            **SIZES, intermediate_size=48, num_key_value_heads=2, sliding_window=window
        )
        model = MistralForCausalLM(config)
    model.eval()
    use_own_attention(model)
    return model


def shares_prompts(model):
    return torch_rollout.shares_prompts(model, Bank(model, LoraSpec(2, 4.0), 1))


@pytest.mark.parametrize(
    ("kind", "shares"), [("gpt2", True), ("mistral", True), ("sliding", False)]
)
def test_bases_that_attend_to_all_of_the_past_share(kind, shares):
    assert shares_prompts(made(kind)) is shares


def test_a_base_whose_attention_is_not_ours_shares_nothing(model):
    assert not shares_prompts(model)


def test_a_base_whose_layers_do_not_attend_through_ours_shares_nothing(model, monkeypatch):
    use_own_attention(model)
    nothing = SimpleNamespace(get=lambda: None, set=lambda prefix: None, reset=lambda token: None)
    monkeypatch.setattr(shared_prefix, "_current", nothing)
    assert not shares_prompts(model)


@pytest.mark.parametrize("argument", ["position_ids", "attention_mask"])
def test_a_base_that_leaves_out_what_sharing_needs_is_found_out(model, argument):
    use_own_attention(model)
    forward = model.model.forward
    model.model.forward = lambda **arguments: forward(**{**arguments, argument: None})
    assert not shares_prompts(model)


def sampled(engine, share, n=5):
    ids = [engine.tokenizer(prompt, add_special_tokens=False)["input_ids"] for prompt in PROMPTS]
    uniforms = torch.rand(len(ids) * n, 20, generator=torch.Generator().manual_seed(3))
    groups = decode(
        engine.model,
        engine.bank,
        ids,
        SLOTS,
        Sampling((20, 20, 9, 20), n=n),
        frozenset(range(1, 8)),
        uniforms,
        share,
    )
    return [row for group in groups for row in group]


def test_what_is_sampled_is_what_is_sampled_without(engine):
    alone, together = sampled(engine, False), sampled(engine, True)
    assert [row.token_ids for row in together] == [row.token_ids for row in alone]
    for ours, theirs in zip(together, alone, strict=True):
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)
    # Rows end at different times, so that the batch is compacted on the way.
    assert len({len(row.token_ids) for row in together}) > 4


def test_completions_in_bfloat16_score_as_well_as_without(another_engine):
    engine = another_engine()
    engine.model.to(torch.bfloat16)
    ids = [engine.tokenizer(prompt, add_special_tokens=False)["input_ids"] for prompt in PROMPTS]

    def off(share):
        written = sampled(engine, share, n=8)
        chosen = engine.engine.log_probs(
            [prompt for prompt in ids for _ in range(8)],
            [row.token_ids for row in written],
            [slot for slot in SLOTS for _ in range(8)],
        )
        logprobs = [torch.tensor(row.logprobs) for row in written]
        return float((torch.cat(chosen) - torch.cat(logprobs)).abs().mean())

    assert off(True) < 1.5 * off(False) + 1e-3


def test_an_update_is_the_one_without(another_engine):
    engines = [another_engine(share_prefix=share) for share in (False, True)]
    groups = engines[0].generate(PROMPTS[:2] * 3, [0] * 6, Sampling(12, n=4), 5)
    samples = [
        TrainingSample(row, float(number % 3) - 1)
        for group in groups
        for number, row in enumerate(group)
    ]
    plain, shared = (
        engine.update({0: samples}, {0: Hyperparameters(1e-3)})[0] for engine in engines
    )
    assert plain["tokens"] == shared["tokens"]
    for name in ("loss", "entropy", "grad_norm"):
        assert shared[name] == pytest.approx(plain[name], rel=1e-4, abs=1e-6)
