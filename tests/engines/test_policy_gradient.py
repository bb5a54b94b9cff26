"""Truncated importance sampling: what a sampler that is not the learner does to an update."""

from dataclasses import replace

import pytest
import torch

from azr_population.engines.engine import Sampling, TrainingSample

RATES = {0: 1e-2}


def written(engine, shift=0.0):
    """Rows of member 0 with advantages; the sampler's log-probabilities are off by `shift`."""
    groups = engine.generate(["abc de"] * 6, [0] * 6, Sampling(8), 3)
    return [
        TrainingSample(
            replace(one, logprobs=tuple(p + shift for p in one.logprobs)), 1.0 - 2 * (row % 2)
        )
        for row, (one,) in enumerate(groups)
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
