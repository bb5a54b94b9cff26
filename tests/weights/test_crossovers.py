"""Crossovers against the dense float64 operation."""

import pytest
import torch
from random_adapters import dense, make, random_adapter, relative_error, truncated

CONDITIONS = [1.0, 1e2, 1e4, 1e6]
RANKS = [2, 3, 16, 20]


def pair_of(rank, condition=1.0, **options):
    return [random_adapter(i, rank, gauge_condition=condition, **options) for i in range(2)]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("rank", RANKS)
def test_svd_subspace_is_exact(rank, condition):
    parents = pair_of(rank, condition)
    for k in {1, rank // 2 or 1, rank - 1}:
        child = make("svd_subspace", parents, k=k)
        for layer in child.factors:
            first, second = (dense(parent, layer) for parent in parents)
            expected = truncated(first, k) + second - truncated(second, k)
            assert relative_error(dense(child, layer), expected) <= 1e-5


def test_svd_subspace_draws_every_k():
    parents = pair_of(4)
    draws = set()
    for seed in range(40):
        child = make("svd_subspace", parents, seed)
        first, second = (dense(parent, "q_proj") for parent in parents)
        errors = [
            relative_error(
                dense(child, "q_proj"), truncated(first, k) + second - truncated(second, k)
            )
            for k in (1, 2, 3)
        ]
        assert min(errors) <= 1e-5
        draws.add(errors.index(min(errors)) + 1)
    assert draws == {1, 2, 3}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("rank", [1, *RANKS])
def test_extrapolative_is_exact_up_to_its_rank(rank, condition):
    better, weaker = pair_of(rank, condition)
    child = make("extrapolative", [better, weaker], eta_min=1.4, eta_max=1.4)
    for layer in child.factors:
        b, w = dense(better, layer), dense(weaker, layer)
        assert relative_error(dense(child, layer), truncated(w + 1.4 * (b - w), rank)) <= 1e-5


@pytest.mark.parametrize("apart", [0.0, 1e-7, 1e-4, 1e-2])
def test_extrapolative_between_siblings(apart):
    """Parents that hardly differ: concatenated, their factors are close to singular."""
    better = random_adapter(0, 8)
    generator = torch.Generator().manual_seed(1)
    weaker = better.map(lambda f: f + apart * torch.randn(f.shape, generator=generator))
    child = make("extrapolative", [better, weaker], eta_min=1.5, eta_max=1.5)
    for layer in child.factors:
        b, w = dense(better, layer), dense(weaker, layer)
        assert relative_error(dense(child, layer), truncated(w + 1.5 * (b - w), 8)) <= 1e-5


def test_extrapolative_draws_one_eta_for_all_layers():
    better, weaker = pair_of(3)
    for seed in range(5):
        child = make("extrapolative", [better, weaker], seed)
        draws = torch.rand((), generator=torch.Generator().manual_seed(seed)).item()
        eta = 1.0 + 0.5 * draws
        for layer in child.factors:
            b, w = dense(better, layer), dense(weaker, layer)
            assert relative_error(dense(child, layer), truncated(w + eta * (b - w), 3)) <= 1e-5


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("rank", [1, *RANKS])
def test_dare_is_exact_on_whole_columns_up_to_its_rank(rank, condition):
    parents = pair_of(rank, condition)
    child = make("dare", parents, 3, p=0.5)
    generator = torch.Generator().manual_seed(3)
    for layer in child.factors:
        total = torch.zeros_like(dense(child, layer))
        for parent in parents:
            columns = torch.rand(total.shape[1], generator=generator) >= 0.5
            total += 0.5 * dense(parent, layer) * columns / 0.5
        assert relative_error(dense(child, layer), truncated(total, rank)) <= 1e-5


def test_layer_wise_takes_each_layer_whole():
    parents = pair_of(4)
    origins = set()
    for seed in range(30):
        child = make("layer_wise", parents, seed)
        origin = []
        for layer, pair in child.factors.items():
            from_ = [
                torch.equal(pair.A, p.factors[layer].A) and torch.equal(pair.B, p.factors[layer].B)
                for p in parents
            ]
            assert sum(from_) == 1
            origin.append(from_.index(True))
        origins.add(tuple(origin))
    assert len(origins) > 8
