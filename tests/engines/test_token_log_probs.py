"""Log-probabilities in pieces: the same numbers, the same gradients, less memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from counted import Counted

from azr_population.engines import token_log_probs as scoring
from azr_population.engines.micro_batches import MicroBatch
from azr_population.engines.token_log_probs import token_log_probs
from azr_population.weights.adapter import LoraSpec
from azr_population.weights.bank import Bank

ROWS, WIDTH = 3, 12


def batch():
    """Three rows of different lengths, of which some tokens are completions'."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(2, 38, (ROWS, WIDTH), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    wanted = (torch.rand(ids.shape, generator=generator) < 0.6) & (mask == 1)
    wanted[:, :3] = False
    return MicroBatch(ids, mask, wanted, torch.empty(0), torch.empty(0))


def scored(engine, weights):
    """Both results, and the gradient of a member under a weighted sum of the first."""
    with engine.bank.adapters_active(torch.zeros(ROWS, dtype=torch.long)):
        chosen, entropies = token_log_probs(engine.model, batch())
        (chosen * weights).sum().backward()
    parameters = engine.bank.parameters_of(0)
    gradient = torch.cat([p.grad.flatten() for p in parameters])
    for parameter in parameters:
        parameter.grad = None
    return chosen.detach(), entropies, gradient


@pytest.mark.parametrize(("piece", "bias"), [(1, False), (5, True), (38 * 7, False)])
def test_pieces_give_the_numbers_and_gradients_of_the_whole(engine, monkeypatch, piece, bias):
    head = engine.model.lm_head
    if bias:
        head.bias = torch.nn.Parameter(torch.linspace(-2, 2, head.out_features), False)
    weights = torch.randn(int(batch().completion.sum()), generator=torch.Generator().manual_seed(1))
    whole = scored(engine, weights)
    monkeypatch.setattr(scoring, "MAX_LOGITS", piece)
    pieces = scored(engine, weights)
    for ours, theirs in zip(pieces, whole, strict=True):
        # float32's rounding: sums over the vocabulary and the tokens in another order.
        assert (ours - theirs).norm() < 1e-5 * theirs.norm()
    assert "forward" not in vars(head)
    with torch.no_grad(), engine.bank.adapters_active(torch.zeros(ROWS, dtype=torch.long)):
        again, _ = token_log_probs(engine.model, batch())
    assert torch.equal(again, pieces[0])


@pytest.mark.parametrize("field", ["final_logit_softcapping", "logit_scale", "logits_scaling"])
def test_a_head_whose_logits_are_changed_afterwards_is_left_alone(engine, field):
    assert scoring._head(engine.model) is engine.model.lm_head
    setattr(engine.model.config, field, 30.0)
    assert scoring._head(engine.model) is None
    nested, text = SimpleNamespace(), engine.model.config
    nested.get_text_config = lambda: text
    engine.model.config = nested
    assert scoring._head(engine.model) is None


def test_a_head_that_members_adapt_is_left_alone(engine):
    Bank(engine.model, LoraSpec(2, 4.0, ("lm_head",)), 1)
    assert scoring._head(engine.model) is None


@pytest.mark.parametrize("learns", [True, False])
def test_8096_tokens_of_a_vocabulary_of_152_thousand_take_less_than_3_gb(learns):
    tokens, width, vocabulary = 8096, 3584, 152_064

    def plain():
        every = torch.log_softmax(torch.nn.functional.linear(hidden, weight).float(), dim=-1)
        chosen = every.gather(-1, targets.unsqueeze(1))
        _ = -(every.detach().exp() * every.detach()).sum(-1)
        if learns:
            chosen.sum().backward()

    def in_pieces():
        rows = scoring.MAX_LOGITS // vocabulary
        chosen, entropy = scoring._Scored.apply(hidden, weight, None, targets, rows)
        assert entropy.shape == (tokens,)
        if learns:
            chosen.sum().backward()

    with Counted() as counted, torch.set_grad_enabled(learns):
        hidden = torch.empty(tokens, width, dtype=torch.bfloat16, requires_grad=learns)
        weight = torch.empty(vocabulary, width, dtype=torch.bfloat16)
        targets = torch.zeros(tokens, dtype=torch.long)
        assert counted.of(plain)["peak"] > 14e9
        hidden.grad = None
        assert counted.of(in_pieces)["peak"] < 3e9
