"""Log-probabilities in pieces: the same numbers, the same gradients, less memory."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from azr_population.engines import token_log_probs as scoring
from azr_population.engines.token_log_probs import token_log_probs

ROWS, WIDTH = 3, 12
COLUMNS = torch.arange(2, WIDTH - 1)


def batch():
    """Three rows of different lengths, of which some tokens are wanted."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(2, 38, (ROWS, WIDTH), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    wanted = torch.rand((ROWS, len(COLUMNS)), generator=generator) < 0.6
    return ids, mask, COLUMNS, wanted & (mask[:, COLUMNS + 1] == 1)


def scored(engine, weights, temperature=1.0):
    """Both results, and the gradient of a member under a weighted sum of the first."""
    with engine.bank.adapters_active(torch.zeros(ROWS, dtype=torch.long)):
        chosen, entropies = token_log_probs(
            engine.model, *batch(), positions=None, temperature=temperature
        )
        (chosen * weights).sum().backward()
    parameters = engine.bank.parameters_of(0)
    gradient = torch.cat([p.grad.flatten() for p in parameters])
    for parameter in parameters:
        parameter.grad = None
    return chosen.detach(), entropies, gradient


@pytest.mark.parametrize(("piece", "temperature"), [(1, 1.0), (5, 0.6), (38 * 7, 1.0)])
def test_pieces_give_the_numbers_and_gradients_of_the_whole(
    engine, monkeypatch, piece, temperature
):
    weights = torch.randn(int(batch()[3].sum()), generator=torch.Generator().manual_seed(1))
    whole = scored(engine, weights, temperature)
    monkeypatch.setattr(scoring, "NUMBERS", piece)
    pieces = scored(engine, weights, temperature)
    for ours, theirs in zip(pieces, whole, strict=True):
        # float32's rounding: sums over the vocabulary and the tokens in another order.
        assert (ours - theirs).norm() < 1e-5 * theirs.norm()
    assert "forward" not in vars(engine.model.lm_head)
    with torch.no_grad(), engine.bank.adapters_active(torch.zeros(ROWS, dtype=torch.long)):
        asked = engine.model, *batch(), None, temperature
        assert torch.equal(token_log_probs(*asked)[0], pieces[0])


def test_a_head_whose_logits_are_changed_afterwards_is_left_alone(engine, monkeypatch):
    monkeypatch.setattr(scoring, "NUMBERS", 1)
    assert scoring._head(engine.model) is engine.model.lm_head
    engine.model.config.final_logit_softcapping = 30.0
    assert scoring._head(engine.model) is None


class Peak(TorchDispatchMode):
    """The most bytes that tensors made inside held at one time."""

    def __init__(self):
        super().__init__()
        self.now = self.most = 0
        self._known = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                self._count(tensor.untyped_storage())
        return made

    def _count(self, storage):
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(storage, self._freed, key, size)

    def _freed(self, key, size):
        self._known.discard(key)
        self.now -= size


@pytest.mark.parametrize("learns", [True, False])
def test_8096_tokens_of_a_vocabulary_of_152_thousand_take_less_than_3_gb(learns):
    from torch._subclasses.fake_tensor import FakeTensorMode

    tokens, width, vocabulary = 8096, 3584, 152_064
    with FakeTensorMode():
        hidden = torch.empty(tokens, width, dtype=torch.bfloat16, requires_grad=learns)
        weight = torch.empty(vocabulary, width, dtype=torch.bfloat16)
        targets = torch.zeros(tokens, dtype=torch.long)
        plain, ours = Peak(), Peak()
        with torch.set_grad_enabled(learns):
            with plain:
                logits = torch.nn.functional.linear(hidden, weight)
                every = torch.log_softmax(logits.float(), dim=-1)
                chosen = every.gather(-1, targets.unsqueeze(1))
                entropy = -(every.detach().exp() * every.detach()).sum(-1)
                if learns:
                    chosen.sum().backward()
            hidden.grad = None
            with ours:
                pieces = scoring.NUMBERS // vocabulary
                told, entropy = scoring._Scored.apply(hidden, weight, None, targets, pieces, 1.0)
                if learns:
                    told.sum().backward()
    assert entropy.shape == (tokens,)
    print(f"plain {plain.most / 1e9:.1f} GB, in pieces {ours.most / 1e9:.2f} GB")
    assert plain.most > 15e9
    assert ours.most < 3e9
