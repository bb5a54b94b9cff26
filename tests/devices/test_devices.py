"""All that computes, on another device than what a run starts from: any two tensors of different
devices that meet fail. Where there is a GPU, on it too (`-m gpu`)."""

from contextlib import nullcontext

import pytest
import torch
from second_device import META, SecondDevice, on_meta
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves
from transformers import Qwen2Config, Qwen2ForCausalLM

from azr_population.config.schema import LearnerConfig
from azr_population.engines import decoding
from azr_population.engines.canary import random_adapter
from azr_population.engines.engine import Completion, Hyperparameters, Sampling, TrainingSample
from azr_population.engines.torch_learner import TorchLearner
from azr_population.engines.torch_rollout import TorchRollout, make_bank
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.breeding import all_operators

SIZES = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.1}  # fmt: skip
MEMBERS = 3
NEVER = SIZES["vocab_size"]
"""A stop token that no base can draw, whatever its weights."""


def made(device, dtype=torch.bfloat16):
    with torch.device("cpu" if device == "cuda" else device):
        torch.manual_seed(0)
        model = Qwen2ForCausalLM(Qwen2Config(**SIZES)).to(dtype).eval()
    model = model.to(device)
    seeds = [torch.Generator().manual_seed(slot) for slot in range(MEMBERS)]
    return model, make_bank(model, LoraSpec(4, 8.0), seeds)


@pytest.fixture(params=["meta", pytest.param("cuda", marks=pytest.mark.gpu)])
def there(request, monkeypatch):
    """A model and its bank on another device."""
    if request.param == "cuda":
        if not torch.cuda.is_available():
            pytest.skip("no GPU")
        yield made("cuda")
        return
    made("cpu")  # what transformers makes once is made of real tensors
    sampled, tensor = decoding.sample_tokens, torch.tensor

    def known(logits, *rest):
        _, chances = sampled(logits, *rest)
        with _disable_current_modes():
            tokens = torch.zeros(len(logits), dtype=torch.long)
        return on_meta(tokens), chances

    monkeypatch.setattr(decoding, "sample_tokens", known)
    # transformers 4 turns it off by a device's name, and does not know this one's.
    monkeypatch.setattr(torch, "autocast", lambda **_: nullcontext())
    # Made on the CPU first, or their contents would never have been anywhere.
    monkeypatch.setattr(
        torch, "tensor", lambda data, device="cpu", **more: tensor(data, **more).to(device)
    )
    with SecondDevice():
        yield made("meta")


def samples():
    done = Completion(1, (1, 2, 3), (4, 5), (-1.0, -1.0), True)
    short = Completion(1, (1, 2), (4,), (-1.0,), True)
    return [TrainingSample(done, 1.0), TrainingSample(short, -1.0)]


@pytest.mark.parametrize("n", [1, 2])
def test_members_are_sampled(there, n, monkeypatch):
    model, bank = there
    prompts, limits = [[1, 2, 3], [4, 5], [1, 2, 3, 4]], (2, 9, 12)
    uniforms = torch.rand(3 * n, 12, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        groups = decoding.decode.__wrapped__(
            model,
            bank,
            prompts,
            [0, 1, 2],
            Sampling(limits, n=n),
            frozenset({NEVER}),
            uniforms,
            False,
        )
    assert [len(done.token_ids) for group in groups for done in group] == [
        limit for limit in limits for _ in range(n)
    ]


@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_member_learns_and_is_scored_and_stored(there, checkpointing):
    model, bank = there
    settings = LearnerConfig(gradient_checkpointing=checkpointing, importance_sampling_cap=2.0)
    learner = TorchLearner(model, bank, settings, parallel=True)
    figures = learner.update({1: samples()}, {1: Hyperparameters(1e-4, kl_loss_coef=0.1)})
    assert figures[1]["tokens"] == 3
    (scores,) = learner.log_probs([[1, 2, 3]], [[4, 5]], [2])
    assert scores.device.type == "cpu"
    state = learner.state_dict()
    assert {t.device.type for t in tree_leaves(state) if isinstance(t, torch.Tensor)} == {"cpu"}
    learner.load_state_dict(state)
    assert all(p.device == bank.device for slot in range(3) for p in bank.parameters_of(slot))


def test_children_are_made_where_their_parents_are(there):
    _, bank = there
    for operator in all_operators():
        child = operator([bank.read(0), bank.read(1)], torch.Generator().manual_seed(0))
        devices = {factor.device for pair in child.factors.values() for factor in (pair.A, pair.B)}
        assert devices == {bank.device}


def test_tensors_of_two_devices_that_meet_fail():
    with SecondDevice(), pytest.raises(RuntimeError):
        torch.zeros(2, device=META) + torch.zeros(2)


@pytest.mark.gpu
def test_a_gpu_samples_and_scores_what_a_cpu_does():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    prompts = [[3 + (5 * row + place) % 60 for place in range(2 + row % 9)] for row in range(24)]
    slots, written, scored, learned = [row // 8 for row in range(24)], [], [], []
    for device in ("cpu", "cuda"):
        model, bank = made(device, torch.float32)
        for slot in range(MEMBERS):
            bank.write(slot, random_adapter(bank.read(slot), slot))
        groups = TorchRollout(model, bank, frozenset({1, 2}), share_prefix=False).generate(
            prompts, slots, Sampling(30), 1
        )
        written.append([done for (done,) in groups])
        rows = written[0]
        learner = TorchLearner(model, bank, LearnerConfig(share_prefix=False), parallel=True)
        ids = [done.token_ids for done in rows]
        scored.append(torch.cat(learner.log_probs([d.prompt_ids for d in rows], ids, slots)))
        turns = [TrainingSample(done, 1.0 - 2 * (i % 2)) for i, done in enumerate(rows[:8])]
        learned.append(learner.update({0: turns}, {0: Hyperparameters(1e-3)})[0])
    equal = sum(a.token_ids == b.token_ids for a, b in zip(*written, strict=True))
    assert equal >= 23
    assert (scored[0] - scored[1]).abs().max() < 1e-4
    sampled = torch.tensor([x for done in written[0] for x in done.logprobs])
    assert (sampled - scored[0]).abs().max() < 1e-4
    assert learned[1]["grad_norm"] == pytest.approx(learned[0]["grad_norm"], rel=1e-3)


@pytest.mark.gpu
def test_a_gpu_draws_no_token_of_probability_0():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    generator = torch.Generator("cuda").manual_seed(0)
    chances = torch.rand(64, 152_064, generator=generator, device="cuda")
    chances *= torch.rand(chances.shape, generator=generator, device="cuda") < 1e-3
    chances /= chances.sum(dim=1, keepdim=True)
    for _ in range(50):
        uniforms = torch.rand(64, generator=generator, device="cuda")
        tokens = decoding.draw(chances, uniforms)
        assert (chances.gather(1, tokens[:, None]) > 0).all()
