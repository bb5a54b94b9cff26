"""Mixed batches of members and bare base, against the learner; and every known way to go wrong."""

import pytest
from refusals import refuses

from azr_population.engines.engine import NO_ADAPTER, PromptBatch, Sampling
from azr_population.engines.torch_rollout import TorchRollout

pytestmark = pytest.mark.slow

PROMPTS = [list(range(20, 20 + length)) for length in (5, 9, 17, 40, 33, 12)]
SLOTS = [2, NO_ADAPTER, 0, 3, NO_ADAPTER, 1]


def test_one_batch_mixes_members_and_rows_of_the_bare_base(pair):
    groups = pair.rollout.generate(PROMPTS, SLOTS, Sampling(24, n=3), 5)
    assert [[row.slot for row in group] for group in groups] == [[slot] * 3 for slot in SLOTS]
    assert [group[0].prompt_ids for group in groups] == [tuple(prompt) for prompt in PROMPTS]
    # Copies are draws of their own; one member is so sure of its answer that they may agree.
    apart = [len({row.token_ids for row in group}) > 1 for group in groups]
    assert sum(apart) >= len(groups) - 1
    assert pair.difference(groups) < 1e-3


def test_vllm_and_torch_say_the_same_of_the_same_tokens(pair):
    learner = pair.learner
    ours = TorchRollout(learner.model, learner.bank, frozenset(pair.rollout._stop_ids))
    greedy = Sampling(24, temperature=0.0)
    both = (rollout.generate(PROMPTS, SLOTS, greedy, 5) for rollout in (pair.rollout, ours))
    for (theirs,), (alone,) in zip(*both, strict=True):
        assert theirs.token_ids == alone.token_ids
        assert theirs.logprobs == pytest.approx(alone.logprobs, abs=1e-3)


def test_temperature_and_top_p_leave_the_log_probabilities_those_of_temperature_1(pair):
    if "v1" not in type(pair.rollout.llm.llm_engine).__module__.split("."):
        pytest.skip("an engine before V1, which gives those after temperature and top-p")
    groups = pair.rollout.generate(PROMPTS, SLOTS, Sampling(12, temperature=0.7, top_p=0.9), 5)
    assert pair.difference(groups) < 1e-3


def test_every_prompt_has_its_own_limit_and_a_seed_draws_alike(pair):
    limits = (3, 9, 1, 4, 8, 2)
    groups = pair.rollout.generate(PROMPTS, SLOTS, Sampling(limits), 5)
    for (row,), limit in zip(groups, limits, strict=True):
        assert len(row.token_ids) == limit or row.finished
    again = pair.rollout.generate(PROMPTS, SLOTS, Sampling(limits), 5)
    assert [row.token_ids for (row,) in again] == [row.token_ids for (row,) in groups]


def test_a_row_draws_the_same_tokens_in_every_batch(pair):
    sampling = Sampling(24, n=2)
    together = pair.rollout.generate(PROMPTS, SLOTS, sampling, 5)
    for row, (prompt, slot) in enumerate(zip(PROMPTS, SLOTS, strict=True)):
        (alone,) = pair.rollout.generate([prompt], [slot], sampling, 5, rows=[row])
        assert [each.token_ids for each in alone] == [each.token_ids for each in together[row]]


def test_a_prompt_that_leaves_no_room_is_refused(pair):
    with refuses("600"):
        pair.rollout.generate([[20] * 600], [0], Sampling(4), 1)


def test_an_abandoned_call_leaves_nothing_to_the_next(pair):
    batch = PromptBatch(PROMPTS, SLOTS, range(6))
    limits = (1, 40, 40, 40, 40, 40)

    def whole():
        ended = pair.rollout.stream(batch, Sampling(limits), 5)
        return {row: group[0].token_ids for part in ended for row, group in part}

    expected = whole()
    stream = pair.rollout.stream(batch, Sampling(limits), 5)
    assert next(stream)[0][0] == 0
    stream.close()
    assert not pair.rollout.llm.llm_engine.has_unfinished_requests()
    assert whole() == expected and sorted(expected) == list(range(6))
    assert list(pair.rollout.stream(PromptBatch([], [], []), Sampling(4), 5)) == []
