"""What shows of the path on GPUs without one: a bfloat16 base, and docs/azr_inside.md, Memory."""

import copy
from dataclasses import replace

import pytest
import torch

from azr_population.config.schema import LearnerConfig
from azr_population.engines.engine import Hyperparameters, Sampling, TrainingSample
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.weights.adapter import LoraSpec


def learner(dtype, checkpointing=False):
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=60, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, eos_token_id=1, initializer_range=0.2,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config).eval().to(dtype)
    generator = torch.Generator().manual_seed(1)
    bank = make_bank(model, LoraSpec(4, 8.0), [generator] * 2)
    learns = LearnerConfig(micro_batch_tokens=64, gradient_checkpointing=checkpointing)
    new_learner = TorchLearner(model, bank, learns, parallel=True)
    with torch.no_grad():
        for slot in range(2):
            for parameter in new_learner.bank.parameters_of(slot):
                parameter.normal_(0, 0.05, generator=generator)
    return new_learner


def written(made):
    """Rows that the members wrote, with log-probabilities as AZR's step computes them."""
    slots = [0, 0, 0, 1, 1, 1]
    prompts = [[5, 6, 7][: 1 + row % 3] for row in range(6)]
    rollout = TorchRollout(made.model, made.bank, frozenset({1}))
    written = [sampled for (sampled,) in rollout.generate(prompts, slots, Sampling(12), 3)]
    chosen = made.log_probs(prompts, [sampled.token_ids for sampled in written], slots)
    samples = {0: [], 1: []}
    for row, sampled in enumerate(written):
        # The decoder's own, from its cache, are the same within bfloat16's rounding.
        assert torch.allclose(chosen[row], torch.tensor(sampled.logprobs), atol=0.15)
        completion = replace(sampled, logprobs=tuple(chosen[row].tolist()))
        samples[sampled.slot].append(TrainingSample(completion, 1.0 if row % 2 else -1.0))
    return samples


@pytest.mark.parametrize("checkpointing", [False, True])
def test_members_learn_in_float32_on_a_bfloat16_base(checkpointing):
    trained = learner(torch.bfloat16, checkpointing)
    samples = written(trained)
    before = copy.deepcopy(trained.bank.read(0).factors)
    updates = trained.update(samples, {0: Hyperparameters(1e-3), 1: Hyperparameters(1e-3)})
    for figures in updates.values():
        assert figures["updates"] == 1.0 and 0 < figures["grad_norm"] < 100
    assert {p.dtype for p in trained.model.parameters()} == {torch.bfloat16}
    for slot in range(2):
        assert {p.dtype for p in trained.bank.parameters_of(slot)} == {torch.float32}
    moved = [
        float((pair.A - before[name].A).abs().max())
        for name, pair in trained.bank.read(0).factors.items()
    ]
    # AdamW's first step is the learning rate; in bfloat16 most of it would be rounded away.
    assert max(moved) == pytest.approx(1e-3, rel=0.01)


@pytest.mark.parametrize(
    ("base", "products", "tolerance"),
    [(torch.float32, torch.float32, 0.1), (torch.bfloat16, torch.bfloat16, 0.05)],
    ids=["a base in bfloat16", "products in bfloat16 too"],
)
def test_the_gradient_is_the_same_within_bfloat16s_rounding(base, products, tolerance):
    exact, rounded = learner(base), learner(torch.bfloat16)
    rounded._products = products
    samples = written(exact)
    rates = {0: Hyperparameters(1e-3), 1: Hyperparameters(1e-3)}
    norms = [
        each.update(copy.deepcopy(samples), rates)[0]["grad_norm"] for each in (exact, rounded)
    ]
    assert norms[0] != norms[1] == pytest.approx(norms[0], rel=tolerance)
    assert {p.dtype for p in rounded.bank.parameters_of(0)} == {torch.float32}
