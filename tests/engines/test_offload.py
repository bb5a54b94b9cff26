"""A learner that leaves the device to the sampler learns the same, and is off it meanwhile."""

import pytest
import torch
from fakes import weights_digest

from azr_population.engines.assembly import LocalEngine
from azr_population.engines.engine import Hyperparameters, Sampling, TrainingSample


def separate(another_engine, offload):
    """A learner, and a sampler with weights of its own."""
    learner = another_engine(offload=offload).engine.learner
    learner.parallel = True
    return LocalEngine(another_engine().engine.rollout, learner)


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


def test_members_are_the_same_to_the_bit(another_engine):
    start = weights_digest(another_engine().engine.learner)
    ours, theirs = (play(separate(another_engine, offload)) for offload in (True, False))
    assert str(ours) == str(theirs)
    assert ours[-1] != start


def test_a_base_that_does_not_fit_the_device_leaves_nothing_there(another_engine, monkeypatch):
    made = separate(another_engine, True)
    offload = made.learner._offload
    copies = iter(range(3))

    def out_of_memory(tensor):
        if next(copies, None) is None:
            raise torch.OutOfMemoryError("made up")
        return tensor.clone()

    monkeypatch.setattr(offload, "_on_device", out_of_memory)
    with pytest.raises(torch.OutOfMemoryError):
        made.log_probs([[5, 6]], [[7]], [0])
    pairs = zip(offload._base, offload._host, strict=True)
    assert all(tensor.data_ptr() == copy.data_ptr() for tensor, copy in pairs)
