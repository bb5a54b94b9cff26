"""The canary between a learner and a sampler that has a bank of its own."""

import pytest
import torch

from azr_population.engines.canary import Canary
from azr_population.engines.engine import BASE, Sample, Sampling
from azr_population.engines.local import LocalEngine
from azr_population.engines.torch_rollout import TorchRollout
from azr_population.errors import UserError

NAMES = ["teacher_0", "teacher_1", "student_0"]


class Wrong(TorchRollout):
    """Tells log-probabilities that are off by `error`."""

    error = 0.0

    def generate(self, *arguments, **options):
        from dataclasses import replace

        groups = super().generate(*arguments, **options)
        return [
            [replace(one, logprobs=tuple(p + self.error for p in one.logprobs)) for one in group]
            for group in groups
        ]


@pytest.fixture
def pair(engine, another_engine):
    """A learner, and a sampler whose members are others until they are pushed."""
    sampler = another_engine().engine.rollout
    rollout = Wrong(sampler.model, sampler.bank, sampler.stop_ids)
    for slot in range(3):
        adapter = rollout.bank.read(slot)
        for factors in adapter.factors.values():
            factors.B.neg_()
        rollout.bank.write(slot, adapter)
    return engine.engine.learner, rollout, Canary(list(range(2, 30)), NAMES, "float32")


def test_pushed_members_are_found_to_be_the_learners_and_others_are_named(pair):
    learner, rollout, canary = pair
    for slot in (0, 2):
        rollout.push(slot, learner.read(slot))
    differences = canary.check(rollout, learner, [0, 2])
    assert sorted(differences) == [BASE, 0, 2] and max(differences.values()) < 1e-5
    with pytest.raises(UserError, match=r"does not serve teacher_1 .* float32 allows 0\.01"):
        canary.check(rollout, learner, [0, 1])


@pytest.mark.parametrize("error", [0.02, float("nan")])
def test_the_bare_base_is_checked_too_and_nan_is_no_agreement(pair, error):
    learner, rollout, canary = pair
    rollout.error = error
    with pytest.raises(UserError, match="does not serve the bare base"):
        canary.check(rollout, learner, [])


def test_a_rehearsal_finds_what_fresh_members_cannot_show(pair, monkeypatch):
    learner, rollout, canary = pair
    before = [learner.read(slot) for slot in range(3)]
    canary.rehearse(rollout, learner, 3)
    for slot, member in enumerate(before):
        for name, factors in member.factors.items():
            assert torch.equal(factors.B, learner.read(slot).factors[name].B)
            assert torch.equal(factors.B, rollout.bank.read(slot).factors[name].B)
    monkeypatch.setattr(rollout, "push", lambda slot, adapter: None)
    with pytest.raises(UserError, match="does not serve teacher_0"):
        canary.rehearse(rollout, learner, 3)


def test_an_engine_checks_what_changed_before_it_samples(pair, monkeypatch):
    learner, rollout, canary = pair
    engine = LocalEngine(rollout, learner, canary)
    engine.push([0, 1, 2])
    prompts, slots = [[3, 4, 5]] * 6, [0, 0, 1, 1, 2, 2]
    written = [one for (one,) in engine.generate(prompts, slots, Sampling(8), 1)]
    monkeypatch.setattr(rollout, "push", lambda slot, adapter: None)
    samples = {2: [Sample(one, 1.0 - 2 * i) for i, one in enumerate(written[4:])]}
    # Nothing that was pushed is checked twice, and a member without an update is not pushed.
    engine.update({0: []}, {0: 1.0})
    engine.generate(prompts, slots, Sampling(8), 1)
    engine.update(samples, {2: 1.0})
    with pytest.raises(UserError, match="does not serve student_0"):
        engine.generate(prompts, slots, Sampling(8), 1)
