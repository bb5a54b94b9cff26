from __future__ import annotations

import pytest
import torch

from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.lowrank import convert


def adapter_of(rank: int, alpha: float) -> Adapter:
    generator = torch.Generator().manual_seed(0)
    factors = Factors(
        torch.randn(rank, 9, generator=generator), torch.randn(12, rank, generator=generator)
    )
    return Adapter(LoraSpec(rank, alpha), {"layer": factors})


def update(adapter: Adapter) -> torch.Tensor:
    pair = adapter.factors["layer"]
    return adapter.spec.scaling * (pair.B.double() @ pair.A.double())


@pytest.mark.parametrize(("rank", "alpha"), [(4, 8.0), (4, 3.0), (7, 8.0), (7, 1.0)])
def test_the_update_is_kept_where_it_can_be(rank: int, alpha: float) -> None:
    adapter = adapter_of(4, 8.0)
    converted = convert(adapter, rank, alpha, torch.Generator().manual_seed(0))
    assert converted.spec == LoraSpec(rank, alpha)
    assert converted.factors["layer"].A.shape == (rank, 9)
    torch.testing.assert_close(update(converted), update(adapter), rtol=1e-6, atol=1e-6)


def test_new_components_can_be_learned() -> None:
    converted = convert(adapter_of(4, 8.0), 6, 8.0, torch.Generator().manual_seed(0))
    pair = converted.factors["layer"]
    assert not pair.B[:, 4:].any()
    assert (pair.A[4:].abs().sum(1) > 0).all() and pair.A[4:].abs().max() <= 1 / 3


def test_a_lower_rank_is_the_best_approximation() -> None:
    adapter = adapter_of(4, 8.0)
    converted = convert(adapter, 2, 5.0, torch.Generator())
    U, S, Vt = torch.linalg.svd(update(adapter))
    expected = U[:, :2] * S[:2] @ Vt[:2]
    assert (update(converted) - expected).norm() <= 1e-6 * expected.norm()


def test_the_same_spec_changes_nothing() -> None:
    adapter = adapter_of(4, 8.0)
    converted = convert(adapter, 4, 8.0, torch.Generator())
    assert torch.equal(converted.factors["layer"].A, adapter.factors["layer"].A)
    assert torch.equal(converted.factors["layer"].B, adapter.factors["layer"].B)
