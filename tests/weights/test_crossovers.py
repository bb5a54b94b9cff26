"""Crossovers against the dense float64 operation."""

import pytest
import torch
from random_adapters import dense, make, random_adapter, relative_error, truncated

from azr_population.weights.adapter import Adapter, Factors

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
    noisy = {
        name: Factors(
            pair.A + apart * torch.randn(pair.A.shape, generator=generator),
            pair.B + apart * torch.randn(pair.B.shape, generator=generator),
        )
        for name, pair in better.factors.items()
    }
    weaker = Adapter(better.spec, noisy)
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


def test_dare_has_the_mean_and_the_noise_of_dropping_single_entries():
    """Before truncation (here none is needed: the parents share their space) the child's entries
    have the mean and the variance that elementwise DARE gives them, p/(1-p) dW^2 / 2."""
    parent = random_adapter(0, 4, shapes={"layer": (10, 12)}, true_rank=2)
    pair = parent.factors["layer"]
    double = Adapter(parent.spec, {"layer": Factors(pair.A.clone(), 2 * pair.B)})
    first, second = dense(parent, "layer"), dense(double, "layer")
    children = torch.stack(
        [dense(make("dare", [parent, double], seed, p=0.7), "layer") for seed in range(1500)]
    )
    assert relative_error(children.mean(0), (first + second) / 2) < 0.08
    variance = 0.7 / 0.3 * (first.square() + second.square()) / 4
    assert relative_error(children.var(0), variance) < 0.08


def test_dare_drops_the_same_columns_for_any_gauge():
    parent, mate = pair_of(4)
    other = random_adapter(0, 4, gauge_condition=50.0)
    first, second = make("dare", [parent, mate], 2), make("dare", [other, mate], 2)
    for layer in first.factors:
        assert relative_error(dense(parent, layer), dense(other, layer)) < 1e-5
        assert relative_error(dense(first, layer), dense(second, layer)) < 1e-5


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
