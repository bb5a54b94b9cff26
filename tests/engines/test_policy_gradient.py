"""Truncated importance sampling, and the KL divergence from the base in the loss."""

import math
from dataclasses import replace

import pytest
import torch

from azr_population.bases.nano import nano_base_path
from azr_population.config.schema import LearnerConfig
from azr_population.engines.base_model import load_base
from azr_population.engines.engine import (
    NO_ADAPTER,
    Completion,
    EngineSettings,
    Hyperparameters,
    Sampling,
    TrainingSample,
)
from azr_population.engines.micro_batches import collate
from azr_population.engines.policy_gradient import (
    _importance,
    finish_metrics,
    low_var_kl,
    policy_loss,
)
from azr_population.engines.torch_rollout import make_bank
from azr_population.weights.adapter import LoraSpec

RATES = {0: Hyperparameters(1e-2)}


def written(engine, shift=0.0):
    """Rows of member 0 with advantages; the sampler's log-probabilities are off by `shift`."""
    groups = engine.generate(["abc de"] * 6, [0] * 6, Sampling(8), 3)
    return [
        TrainingSample(
            replace(completion, logprobs=tuple(p + shift for p in completion.logprobs)),
            1.0 - 2 * (row % 2),
        )
        for row, (completion,) in enumerate(groups)
    ]


def factors(engine):
    return [factor.detach().clone() for factor in engine.bank.parameters_of(0)]


def test_a_sampler_that_agrees_changes_nothing(engine, another_engine):
    corrected = another_engine(importance_sampling_cap=2.0)
    plain = engine.update({0: written(engine)}, RATES)[0]
    figures = corrected.update({0: written(corrected)}, RATES)[0]
    assert figures["mismatch_kl"] == pytest.approx(0, abs=1e-6)
    assert figures["ess"] == pytest.approx(1, abs=1e-6) and figures["is_clip_frac"] == 0
    assert figures["grad_norm"] == pytest.approx(plain["grad_norm"], rel=1e-4)
    assert not any(name.startswith(("sampler", "weight")) for name in plain)
    for ours, theirs in zip(factors(engine), factors(corrected), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize(("shift", "weight", "capped"), [(-0.5, 1.6487, 0), (-1.0, 2.0, 1)])
def test_weights_are_learner_over_sampler_and_capped(another_engine, shift, weight, capped):
    exact, off = (
        another_engine(importance_sampling_cap=2.0),
        another_engine(importance_sampling_cap=2.0),
    )
    right = exact.update({0: written(exact)}, RATES)[0]
    wrong = off.update({0: written(off, shift)}, RATES)[0]
    # All tokens are equally wrong, so the gradient is multiplied by their weight.
    assert wrong["grad_norm"] == pytest.approx(weight * right["grad_norm"], rel=1e-3)
    assert wrong["is_clip_frac"] == capped
    assert wrong["ess"] == pytest.approx(1, abs=1e-5)
    ratio = torch.tensor(-shift).exp()
    assert wrong["mismatch_kl"] == pytest.approx(float(ratio - 1 + shift), rel=1e-3)


def test_the_effective_sample_size_falls_when_weights_differ(another_engine):
    engine = another_engine(importance_sampling_cap=2.0)
    rows = written(engine)
    uneven = [
        TrainingSample(
            replace(s.completion, logprobs=tuple(p + 3.0 for p in s.completion.logprobs)), 1.0
        )
        for s in rows[:3]
    ]
    figures = engine.update({0: [*uneven, *rows[3:]]}, RATES)[0]
    assert 0.4 < figures["ess"] < 0.75


def test_the_gradient_of_the_kl_term_is_that_of_its_closed_form_on_the_nano_base():
    model, _ = load_base(nano_base_path(), "float32", "cpu")
    bank = make_bank(model, LoraSpec(rank=4, alpha=8.0), [torch.Generator().manual_seed(1)])
    with torch.no_grad():
        for factor in bank.parameters_of(0):
            factor += 0.02 * torch.randn(factor.shape, generator=torch.Generator().manual_seed(2))
    prompt, answer, coefficient = (5, 9, 12, 7), (31, 8, 44, 3, 17), 0.3
    ids, slot = torch.tensor([[*prompt, *answer]]), torch.zeros(1, dtype=torch.long)

    def scores():
        every = torch.log_softmax(model(input_ids=ids).logits[0, 3:-1], dim=-1)
        return every.gather(-1, torch.tensor(answer)[:, None])[:, 0]

    with bank.adapters_active(slot):
        ours = scores()
    ratio = scores().detach() - ours
    expected = coefficient * (ratio.exp() - 1 - ratio).sum()
    gradients = torch.autograd.grad(expected, bank.parameters_of(0))
    done = Completion(0, prompt, answer, tuple(ours.tolist()), True)
    batch = collate([[TrainingSample(done, 0.0)]], torch.device("cpu"))
    with bank.adapters_active(slot):
        bare = bank.adapters_active(slot + NO_ADAPTER)
        loss, metrics = policy_loss(model, batch, None, coefficient, bare)
        loss.backward()
    divergence = float(expected.detach()) / coefficient
    assert metrics["kl_loss"] == pytest.approx(divergence, rel=1e-4) and divergence > 0
    for factor, gradient in zip(bank.parameters_of(0), gradients, strict=True):
        assert torch.allclose(factor.grad, gradient, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("setting", "rollout", "dtype", "cap"),
    [
        (None, "torch", "float32", 0.0),
        (None, "torch", "bfloat16", 2.0),
        (None, "vllm", "float32", 2.0),
        (0.0, "vllm", "bfloat16", 0.0),
        (5.0, "torch", "float32", 5.0),
    ],
)
def test_a_sampler_that_is_not_quite_the_learner_is_corrected_for(setting, rollout, dtype, cap):
    settings = EngineSettings(
        "base",
        ("student_0",),
        LoraSpec(4, 8.0),
        dtype=dtype,
        rollout=rollout,
        learner=LearnerConfig(importance_sampling_cap=setting),
    )
    assert settings.importance_sampling_cap == cap


@pytest.mark.parametrize(
    ("log_weight", "weight"),
    [(100.0, 2.0), (88.8, 2.0), (math.inf, 2.0), (-200.0, 0.0), (-math.inf, 0.0), (math.nan, 0.0)],
)
def test_importance_weights_and_their_sums_are_finite_at_the_edges(log_weight, weight):
    weights, sums = _importance(torch.tensor([log_weight, 0.0]), 2.0)
    assert weights.tolist() == pytest.approx([weight, 1.0], abs=1e-8)
    assert all(map(math.isfinite, sums.values()))
    assert finish_metrics({name: value / 2 for name, value in sums.items()})["ess"] <= 1.0


def test_estimates_of_the_kl_are_cut_off_and_have_slopes_at_the_edges():
    logprobs = torch.tensor([0.0, -1.0, -100.0, 100.0], requires_grad=True)
    estimates = low_var_kl(logprobs, torch.zeros(4))
    assert estimates.tolist() == pytest.approx([0.0, math.e - 2, 10.0, 10.0])
    estimates.sum().backward()
    assert logprobs.grad.tolist() == pytest.approx([0.0, 1 - math.e, 0.0, 0.0])
