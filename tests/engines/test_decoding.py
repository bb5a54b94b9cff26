import gc
import weakref

import pytest
import torch
from refusals import refuses

from azr_population.engines import decoding, torch_rollout
from azr_population.engines.decoding import draw, sample_tokens
from azr_population.engines.engine import Sampling
from azr_population.engines.torch_rollout import _uniforms

PROMPTS = ["abc", "hello world", "a", "zz 9", "abc"]
SLOTS = [2, 0, 1, 0, 1]
STOPS = list(range(1, 8))
"""Several tokens end a text, or a random model would hardly ever end one."""
GREEDY = Sampling(max_new_tokens=20, temperature=0)


def uniforms(count):
    return torch.rand(count, generator=torch.Generator().manual_seed(7))


def test_several_samples_per_prompt_come_in_order_and_differ(engine):
    groups = engine.generate(PROMPTS, SLOTS, Sampling(12, n=4), 7)
    assert [len(group) for group in groups] == [4] * 5
    assert all(row.prompt_ids == groups[0][0].prompt_ids for row in groups[0])
    assert len({row.token_ids for row in groups[0]}) > 1


def test_a_prompt_in_pieces_gives_the_same_text(engine, monkeypatch):
    prompts, slots = ["abc", "a longer prompt here", "x"], [0, 1, 2]
    whole = engine.generate(prompts, slots, Sampling(8, temperature=0.0), 0)
    monkeypatch.setattr("azr_population.engines.decoding.PREFILL_TOKENS", 9)
    pieces = engine.generate(prompts, slots, Sampling(8, temperature=0.0), 0)
    for (ours,), (theirs,) in zip(pieces, whole, strict=True):
        assert ours.token_ids == theirs.token_ids
        assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-4)


def test_text_leaves_the_end_of_sequence_out_and_unfinished_rows_say_so(engine):
    for (row,) in engine.generate(PROMPTS, SLOTS, Sampling(3), 7):
        assert "<eos>" not in row.text
        assert row.finished == (row.token_ids[-1] == engine.tokenizer.eos_token_id)
        assert len(row.token_ids) <= 3 and len(row.logprobs) == len(row.token_ids)


def test_a_row_draws_alike_in_whatever_batch_it_is(engine, another_engine):
    sampling = Sampling(12, n=2)
    whole = engine.generate(PROMPTS, SLOTS, sampling, 7)
    small = another_engine(generate_rows=2).generate(PROMPTS, SLOTS, sampling, 7)
    assert [[row.text for row in group] for group in small] == [
        [row.text for row in group] for group in whole
    ]
    ids = [group[0].prompt_ids for group in whole]
    rollout = engine.engine.rollout
    (part,) = rollout.generate([ids[3]], [SLOTS[3]], sampling, 7, rows=[3])
    assert [row.token_ids for row in part] == [row.token_ids for row in whole[3]]
    (other,) = rollout.generate([ids[3]], [SLOTS[3]], sampling, 7)
    assert [row.token_ids for row in other] != [row.token_ids for row in whole[3]]


def test_every_completion_of_every_row_draws_for_itself():
    drawn = _uniforms(7, [0, 1, 2, 9], 3, 2)
    assert len(set(map(tuple, drawn.tolist()))) == 12


@pytest.mark.parametrize(("rows", "tokens"), [(6, 1000), (512, 48)])
def test_a_batch_is_limited_in_completions_and_not_in_prompts(engine, monkeypatch, rows, tokens):
    rollout, prompts = engine.engine.rollout, []
    rollout.generate([[3]], [0], Sampling(1, n=3), 7)  # tries the base
    decode = torch_rollout.decode

    def followed(model, bank, part, *rest):
        prompts.append(len(part))
        return decode(model, bank, part, *rest)

    monkeypatch.setattr(torch_rollout, "decode", followed)
    monkeypatch.setattr(rollout, "_rows", rows)
    monkeypatch.setattr(rollout, "_tokens", tokens)
    rollout.generate([[3] * 4] * 5, [0] * 5, Sampling(4, n=3), 7)
    assert prompts == [2, 2, 1]


def test_a_member_that_diverged_is_named(engine):
    with torch.no_grad():
        for factor in engine.bank.parameters_of(1):
            factor.fill_(torch.nan)
    with refuses("the member in slot 1"):
        engine.generate(["abc"] * 3, [0, 1, 2], Sampling(4, n=3), 7)


def test_a_number_next_to_1_chooses_a_token_that_has_a_chance():
    logits = torch.tensor([[0.3, 0.7, 0.0]]).log().repeat(3, 1)
    ends = torch.tensor([0.0, 0.3000001, 1 - 2**-24])
    assert sample_tokens(logits, Sampling(1), ends)[0].tolist() == [0, 1, 1]
    assert sample_tokens(logits, Sampling(1), torch.ones(3))[0].tolist() == [1, 1, 1]


def test_a_sum_that_is_not_in_order_draws_no_token_of_probability_0(monkeypatch):
    """As on a GPU, which adds up parts of a row at once."""
    in_order = torch.Tensor.cumsum

    def in_parts(self, *dims, **options):
        mass = in_order(self, *dims, **options)
        mass[:, 2] += 1e-3
        return mass

    monkeypatch.setattr(torch.Tensor, "cumsum", in_parts)
    probabilities = torch.tensor([[0.25, 0.25, 0.0, 0.5, 0.0]]).repeat(3, 1)
    assert draw(probabilities, torch.tensor([0.4999, 0.5005, 0.6])).tolist() == [1, 3, 3]
    assert draw(torch.full((1, 3), torch.nan), torch.tensor([0.5])).shape == (1,)


def test_every_prompt_has_its_own_limit(engine):
    long = engine.generate(PROMPTS, SLOTS, GREEDY, 7)
    limits = (3, 20, 1, 7, 5)
    cut = engine.generate(PROMPTS, SLOTS, Sampling(limits, temperature=0), 7)
    for (whole,), (part,), limit in zip(long, cut, limits, strict=True):
        assert part.token_ids == whole.token_ids[:limit]
        assert part.finished == (whole.finished and len(whole.token_ids) <= limit)
    assert max(len(whole.token_ids) for (whole,) in long) > 7
    with pytest.raises(ValueError):
        engine.generate(PROMPTS, SLOTS, Sampling((3, 4)), 7)


def test_top_p_keeps_the_likeliest_tokens_only():
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().repeat(2000, 1)
    tokens, logprobs = sample_tokens(logits, Sampling(1, top_p=0.7), uniforms(2000))
    assert set(tokens.tolist()) == {0, 1}
    assert (tokens == 0).float().mean() == pytest.approx(0.5 / 0.8, abs=0.04)
    nothing = sample_tokens(logits.flip(1), Sampling(1, top_p=0.0), uniforms(2000))[0]
    assert set(nothing.tolist()) == {3}, "the likeliest"
    # Log-probabilities stay those of the whole distribution.
    assert logprobs[tokens == 0][0].exp() == pytest.approx(0.5, abs=1e-5)


def test_temperature_flattens():
    logits = torch.tensor([[0.9, 0.1]]).log().repeat(4000, 1)
    tokens, _ = sample_tokens(logits, Sampling(1, temperature=2.0), uniforms(4000))
    assert (tokens == 0).float().mean() == pytest.approx(0.75, abs=0.03)


def test_top_p_is_of_the_flattened_distribution():
    logits = torch.tensor([[0.9, 0.1]]).log().repeat(4000, 1)
    # Of [0.75, 0.25] both stay.
    sampling = Sampling(1, temperature=2.0, top_p=0.8)
    tokens, _ = sample_tokens(logits, sampling, uniforms(4000))
    assert (tokens == 0).float().mean() == pytest.approx(0.75, abs=0.03)


def test_a_token_that_only_a_high_temperature_draws_has_a_finite_log_probability():
    logits = torch.tensor([[0.0, -200.0]]).repeat(64, 1)
    tokens, logprobs = sample_tokens(logits, Sampling(1, temperature=1000.0), uniforms(64))
    assert set(tokens.tolist()) == {0, 1} and logprobs.isfinite().all()


@pytest.mark.parametrize("n", [1, 3])
def test_steps_of_one_shape_write_what_growing_ones_do(engine, monkeypatch, n):
    """As on a GPU, where they are recorded and replayed."""
    engine.engine.rollout.stop_ids = frozenset(STOPS)
    monkeypatch.setattr("azr_population.engines.torch_rollout.shares_prompts", lambda *_: False)
    sampling = Sampling((20, 31, 9, 30, 40), n=n)
    growing = engine.generate(PROMPTS, SLOTS, sampling, 7)
    monkeypatch.setattr(engine.engine.rollout, "_step_graphs", True)
    monkeypatch.setattr("azr_population.engines.step_graph.COLUMNS", 8)
    held = engine.generate(PROMPTS, SLOTS, sampling, 7)
    assert max(len(row.token_ids) for group in held for row in group) > 16
    for group, other in zip(held, growing, strict=True):
        for row, alike in zip(group, other, strict=True):
            assert row.token_ids == alike.token_ids
            assert row.logprobs == pytest.approx(alike.logprobs, abs=1e-5)


def test_ended_rows_of_a_small_base_stay_until_a_graph_is_recorded_anyway(engine, monkeypatch):
    monkeypatch.setattr("azr_population.engines.torch_rollout.shares_prompts", lambda *_: False)
    engine.engine.rollout.stop_ids = frozenset()
    monkeypatch.setattr(engine.engine.rollout, "_step_graphs", True)
    rows = []
    make = decoding.StepGraph

    def followed(forward, cache, mask, *arguments):
        rows.append(len(mask))
        return make(forward, cache, mask, *arguments)

    monkeypatch.setattr(decoding, "StepGraph", followed)

    def recorded(columns):
        """Rows of each graph that is recorded for rows of 2, 5, 9, 30 and 40 tokens."""
        rows.clear()
        monkeypatch.setattr("azr_population.engines.step_graph.COLUMNS", columns)
        engine.generate(PROMPTS, SLOTS, Sampling((2, 5, 9, 30, 40)), 7)
        return list(rows)

    assert recorded(256) == [5]
    assert recorded(16) == [5, 3, 2, 1]
    monkeypatch.setattr(decoding, "SMALL_BASE", 0)
    # Four of five rows are too many to move the cache.
    assert recorded(256) == [5, 3, 2, 1]


@pytest.mark.parametrize("graphs", [False, True])
def test_no_cache_or_graph_outlives_its_batch(engine, monkeypatch, graphs):
    """A 7B base's cache has 8 GB for 256 rows: Python must free it at once, without its collector,
    which runs by the number of objects."""
    monkeypatch.setattr("azr_population.engines.torch_rollout.shares_prompts", lambda *_: False)
    monkeypatch.setattr("azr_population.engines.step_graph.COLUMNS", 8)
    monkeypatch.setattr(engine.engine.rollout, "_step_graphs", graphs)
    made = []

    def followed(name):
        make = getattr(decoding, name)

        def follow(*arguments):
            one = make(*arguments)
            made.append((name, weakref.ref(one)))
            return one

        monkeypatch.setattr(decoding, name, follow)

    followed("new_cache")
    followed("StepGraph")
    gc.collect()
    gc.disable()
    try:
        engine.generate(PROMPTS, SLOTS, Sampling(20, n=2), 7)
        assert {name for name, _ in made} == {"new_cache", *(["StepGraph"] if graphs else [])}
        assert [name for name, one in made if one() is not None] == []
    finally:
        gc.enable()
