"""The canary between a learner and a sampler that has a bank of its own."""

from contextlib import contextmanager

import pytest
import torch
from refusals import refuses

from azr_population.engines.assembly import LocalEngine
from azr_population.engines.canary import Canary, is_better
from azr_population.engines.engine import NO_ADAPTER, Hyperparameters, Sampling, TrainingSample
from azr_population.engines.torch_rollout import TorchRollout

NAMES = ["teacher_0", "teacher_1", "student_0"]


class Wrong(TorchRollout):
    """Tells log-probabilities that are off by `error`."""

    error = 0.0

    def generate(self, *arguments, **options):
        from dataclasses import replace

        groups = super().generate(*arguments, **options)
        return [
            [replace(row, logprobs=tuple(p + self.error for p in row.logprobs)) for row in group]
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
    assert sorted(differences) == [NO_ADAPTER, 0, 2] and max(differences.values()) < 1e-5
    with refuses("teacher_1"):
        canary.check(rollout, learner, [0, 1])


def test_what_is_written_or_loaded_is_pushed(pair):
    learner, rollout, _ = pair
    engine = LocalEngine(rollout, learner)

    def alike(slot, of=None):
        ours, theirs = (bank.parameters_of(n) for bank, n in (
            (rollout.bank, slot), (learner.bank, slot if of is None else of)))  # fmt: skip
        return all(map(torch.equal, ours, theirs))

    engine.write(1, learner.read(2))
    assert alike(1) and alike(1, of=2) and not alike(0)
    engine.load_state_dict(engine.state_dict())
    assert alike(0) and alike(1) and alike(2)


def test_one_token_makes_no_member_better():
    few = torch.tensor([0.05]), torch.tensor([0.10])
    many = torch.tensor([0.05, 0.06, 0.05, 0.06]), torch.tensor([0.4, 0.5, 0.45, 0.5])
    assert not is_better(*few) and is_better(*many)


@pytest.mark.parametrize("error", [0.02, float("nan")])
def test_the_bare_base_is_checked_too_and_nan_is_no_agreement(pair, error):
    learner, rollout, canary = pair
    rollout.error = error
    with refuses("bare base"):
        canary.check(rollout, learner, [])


def test_a_rehearsal_finds_what_fresh_members_cannot_show(pair, monkeypatch):
    learner, rollout, canary = pair
    before = [learner.read(slot) for slot in range(3)]
    canary.self_test(rollout, learner, 3)
    for slot, member in enumerate(before):
        for name, factors in member.factors.items():
            assert torch.equal(factors.B, learner.read(slot).factors[name].B)
            assert torch.equal(factors.B, rollout.bank.read(slot).factors[name].B)
    monkeypatch.setattr(rollout, "push", lambda slot, adapter: None)
    with refuses("teacher_0"):
        canary.self_test(rollout, learner, 3)


def test_an_engine_checks_what_changed_before_it_samples(pair, monkeypatch):
    learner, rollout, canary = pair
    engine = LocalEngine(rollout, learner, canary)
    engine.push([0, 1, 2])
    prompts, slots = [[3, 4, 5]] * 6, [0, 0, 1, 1, 2, 2]
    written = [row for (row,) in engine.generate(prompts, slots, Sampling(8), 1)]
    monkeypatch.setattr(rollout, "push", lambda slot, adapter: None)
    samples = {2: [TrainingSample(row, 1.0 - 2 * i) for i, row in enumerate(written[4:])]}
    # Nothing that was pushed is checked twice, and a member without an update is not pushed.
    engine.update({0: []}, {0: Hyperparameters(1.0)})
    engine.generate(prompts, slots, Sampling(8), 1)
    engine.update(samples, {2: Hyperparameters(1.0)})
    with refuses("student_0"):
        engine.generate(prompts, slots, Sampling(8), 1)


def test_outside_of_float32_a_large_difference_is_told_and_a_swap_is_refused(pair, capsys):
    learner, rollout, _ = pair
    canary = Canary(list(range(2, 30)), NAMES, "bfloat16")
    for slot in range(3):
        rollout.push(slot, learner.read(slot))
    rollout.error = 0.4
    canary.check(rollout, learner, range(3))
    assert "0.40" in capsys.readouterr().err
    rollout.error = 0.0
    rollout.push(0, learner.read(1))
    with refuses("teacher_0"):
        canary.check(rollout, learner, range(3))


def test_the_learner_computes_only_while_the_sampler_sleeps(pair, monkeypatch):
    """The order of a step: sleep, score or update, wake, push, canary, and then tokens."""
    learner, rollout, canary = pair
    happened = []

    @contextmanager
    def asleep():
        happened.append("sleep")
        yield
        happened.append("wake")

    def noted(owner, name):
        inner = getattr(owner, name)

        def call(*arguments, **options):
            happened.append(name)
            return inner(*arguments, **options)

        monkeypatch.setattr(owner, name, call)

    monkeypatch.setattr(rollout, "asleep", asleep)
    for owner, name in [(learner, "log_probs"), (learner, "update"), (rollout, "push")]:
        noted(owner, name)
    noted(rollout, "stream")
    engine = LocalEngine(rollout, learner, canary)
    engine.push([0, 1, 2])
    happened.clear()
    (row,), (other,) = engine.generate([[3, 4, 5]] * 2, [2, 2], Sampling(8), 1)
    checked = ["stream", "sleep", "log_probs", "wake"]
    assert happened == [*checked, "stream"]
    engine.log_probs([row.prompt_ids], [row.token_ids], [2])
    engine.update(
        {2: [TrainingSample(row, 1.0), TrainingSample(other, -1.0)]}, {2: Hyperparameters(1e-3)}
    )
    engine.generate([[3, 4, 5]], [2], Sampling(8), 2)
    assert happened[5:] == [
        *("sleep", "log_probs", "wake", "sleep", "update", "wake", "push"), *checked, "stream",
    ]  # fmt: skip
