from __future__ import annotations

import pytest
import torch

from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.lowrank import inner_products, mean_cosine


def adapter(seed: int, rank: int = 4, alpha: float = 8.0) -> Adapter:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"up": (12, 10), "down": (10, 12)}
    factors = {
        name: Factors(
            torch.randn(rank, width, generator=generator),
            torch.randn(height, rank, generator=generator),
        )
        for name, (height, width) in shapes.items()
    }
    return Adapter(LoraSpec(rank, alpha), factors)


def flat(of: Adapter) -> torch.Tensor:
    parts = [(of.spec.scaling * pair.B @ pair.A).flatten() for pair in of.factors.values()]
    return torch.cat(parts).double()


def test_products_are_those_of_the_updates_of_any_rank_and_scale() -> None:
    adapters = [adapter(1), adapter(2, rank=2), adapter(3, alpha=32.0)]
    updates = torch.stack([flat(one) for one in adapters])
    torch.testing.assert_close(inner_products(adapters), updates @ updates.T, rtol=1e-4, atol=1e-3)


def test_the_cosine_is_one_for_equals_and_does_not_see_the_basis_of_the_factors() -> None:
    one = adapter(1)
    turn = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(0)))[0]
    turned = {name: Factors(turn @ p.A, p.B @ turn.T) for name, p in one.factors.items()}
    assert mean_cosine([one, Adapter(one.spec, turned)]) == pytest.approx(1.0, abs=1e-5)
    opposite = {name: Factors(pair.A, -pair.B) for name, pair in one.factors.items()}
    assert mean_cosine([one, Adapter(one.spec, opposite)]) == pytest.approx(-1.0, abs=1e-6)


def test_who_has_learned_nothing_has_no_direction() -> None:
    one = adapter(1)
    fresh = {name: Factors(pair.A, 0 * pair.B) for name, pair in one.factors.items()}
    assert mean_cosine([one, Adapter(one.spec, fresh)]) is None
    assert mean_cosine([one]) is None
