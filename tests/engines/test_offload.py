"""A learner that leaves the device to the sampler learns the same, and is off it meanwhile."""

import copy

import torch
from fakes import weights_digest

from azr_population.config.schema import LearnerConfig
from azr_population.engines.assembly import LocalEngine
from azr_population.engines.engine import Hyperparameters, Sampling, TrainingSample
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.weights.adapter import LoraSpec

SLOTS = 3


def engine(offloaded):
    """A learner, and a sampler with weights of its own."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=60, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.2,
    )  # fmt: skip
    base, spec = Qwen2ForCausalLM(config).eval(), LoraSpec(4, 8.0)
    served = copy.deepcopy(base)
    banks = [
        make_bank(model, spec, [torch.Generator().manual_seed(slot) for slot in range(SLOTS)])
        for model in (base, served)
    ]
    learner = TorchLearner(base, banks[0], LearnerConfig(offload=offloaded), parallel=True)
    return LocalEngine(TorchRollout(served, banks[1], frozenset({1})), learner)


def play(made):
    """What members draw and hold over three steps, with a child and a resume in between."""
    draws = []
    for step in range(3):
        prompts, slots = [[5, 6, 7 + row] for row in range(6)], [0, 0, 1, 1, 2, 2]
        groups = made.generate(prompts, slots, Sampling(6), seed=step)
        samples = {}
        for row, (completion,) in enumerate(groups):
            samples.setdefault(completion.slot, []).append(
                TrainingSample(completion, row % 2 - 0.5)
            )
        draws += [completion.token_ids for (completion,) in groups]
        draws.append(
            made.log_probs(prompts, [completion.token_ids for (completion,) in groups], slots)
        )
        updates = made.update(samples, dict.fromkeys(samples, Hyperparameters(1e-2)))
        draws.append(updates)
        if step == 0:
            made.write(2, made.read(0))
        if step == 1:
            state = made.state_dict()
            made.update(samples, dict.fromkeys(samples, Hyperparameters(1e-2)))
            made.load_state_dict(state)
    return [*draws, weights_digest(made.learner)]


def test_members_are_the_same_to_the_bit():
    ours, theirs = play(engine(True)), play(engine(False))
    assert str(ours) == str(theirs)
    assert ours[-1] != weights_digest(engine(True).learner)
