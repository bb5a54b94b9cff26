"""A step's sequence with a vLLM that serves: sample, update, push, canary, sample again."""

import pytest
from refusals import refuses

from azr_population.engines import vllm_versions
from azr_population.engines.assembly import LocalEngine
from azr_population.engines.engine import Hyperparameters, Sampling, TrainingSample

pytestmark = pytest.mark.slow

PROMPTS = [list(range(20, 20 + length)) for length in (17, 40, 33, 12)]
SLOTS = [0, 1, 2, 3]


def sampled(engine):
    """Two rows of each member."""
    return engine.generate(PROMPTS, SLOTS, Sampling(12, n=2), 5)


def learned(engine, groups):
    """An update from them that moves every member far enough to be seen."""
    samples = {
        slot: [
            TrainingSample(row, advantage)
            for row, advantage in zip(group, (1.0, -1.0), strict=True)
        ]
        for slot, group in zip(SLOTS, groups, strict=True)
    }
    return engine.update(samples, dict.fromkeys(SLOTS, Hyperparameters(2e-2)))


@pytest.fixture
def engine(pair):
    return LocalEngine(pair.rollout, pair.learner, pair.canary)


def test_todays_vllm_samples_by_its_v1_engine(pair):
    if vllm_versions.version() < (0, 11):
        pytest.skip("V1 is the only engine from 0.11 on")
    assert type(pair.rollout.llm.llm_engine).__module__.startswith("vllm.v1.")


def test_what_was_learned_is_served_with_the_next_token(pair, engine):
    first = sampled(engine)
    assert pair.difference(first) < 1e-3
    updates = learned(engine, first)
    assert [figures["updates"] for figures in updates.values()] == [1.0] * 4
    # The old tokens are no longer as likely: a member that was not pushed would be seen.
    assert pair.difference(first) > 0.1
    assert pair.difference(sampled(engine)) < 1e-3


def test_a_push_that_is_lost_ends_the_run_before_the_next_token(engine, monkeypatch):
    first = sampled(engine)
    monkeypatch.setattr(engine.rollout, "push", lambda slot, adapter: None)
    learned(engine, first)
    with refuses("teacher_0"):
        sampled(engine)
