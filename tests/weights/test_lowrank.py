"""Conversion to another rank and alpha, and the likeness of updates."""

from itertools import combinations

import pytest
import torch
from random_adapters import SHAPES, dense, random_adapter, relative_error, same

from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.lowrank import (
    convert,
    decompose_all,
    mean_cosine,
)


def converted_to(rank, alpha):
    adapter = random_adapter(0)
    return adapter, convert(adapter, rank, alpha, torch.Generator().manual_seed(0))


def update(adapter, name):
    return adapter.spec.scaling * dense(adapter, name)


@pytest.mark.parametrize(("rank", "alpha"), [(4, 8.0), (4, 3.0), (7, 8.0), (7, 1.0)])
def test_a_converted_update_is_the_same(rank, alpha):
    adapter, converted = converted_to(rank, alpha)
    assert converted.spec == LoraSpec(rank, alpha, adapter.spec.target_modules)
    for name, pair in converted.factors.items():
        assert pair.A.shape[0] == rank
        assert relative_error(update(converted, name), update(adapter, name)) <= 1e-6
    assert same(converted, adapter) == ((rank, alpha) == (4, 8.0))


def test_new_components_can_be_learned():
    _, converted = converted_to(6, 8.0)
    for pair in converted.factors.values():
        assert not pair.B[:, 4:].any()
        assert (pair.A[4:].abs().sum(1) > 0).all()
        assert pair.A[4:].abs().max() <= pair.A.shape[1] ** -0.5


def test_cosines_are_those_of_the_updates_of_any_rank_and_scale():
    adapters = [random_adapter(1), random_adapter(2, rank=2), random_adapter(3, alpha=32.0)]
    updates = [torch.cat([update(each, name).flatten() for name in SHAPES]) for each in adapters]
    cosines = [float(torch.cosine_similarity(a, b, 0)) for a, b in combinations(updates, 2)]
    assert mean_cosine(adapters) == pytest.approx(sum(cosines) / 3, abs=1e-5)


def test_the_cosine_sees_updates_and_not_their_factors():
    adapter, mixed = random_adapter(1), random_adapter(1, gauge_condition=10.0)
    opposite, zero = (
        Adapter(adapter.spec, {n: Factors(p.A, p.B * by) for n, p in adapter.factors.items()})
        for by in (-1, 0)
    )
    assert mean_cosine([adapter, mixed]) == pytest.approx(1.0, abs=1e-5)
    assert mean_cosine([adapter, opposite]) == pytest.approx(-1.0, abs=1e-6)
    # A member that has learned nothing has no direction.
    assert mean_cosine([adapter, zero]) is None and mean_cosine([adapter]) is None


def test_layers_are_decomposed_together_as_alone(monkeypatch):
    """In batches of layers, well conditioned or not."""
    monkeypatch.setattr("azr_population.weights.lowrank.LAYERS_AT_ONCE", 3)
    adapters = [random_adapter(1), random_adapter(2, gauge_condition=1e6)]
    pairs = [(f.B, f.A) for adapter in adapters for f in adapter.factors.values()]
    together = list(decompose_all(pairs))
    assert len(together) == len(pairs) == 8
    for spectrum, (B, A) in zip(together, pairs, strict=True):
        (alone,) = decompose_all([(B, A)])
        assert all(map(torch.equal, spectrum, alone))
        dW = (spectrum.B @ spectrum.U * spectrum.S) @ (spectrum.V @ spectrum.A)
        assert relative_error(dW, B.double() @ A.double()) <= 1e-9
