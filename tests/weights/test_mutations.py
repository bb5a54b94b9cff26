"""Mutations against the dense float64 operation."""

import math

import pytest
import torch
from random_adapters import dense, make, random_adapter, relative_error

CONDITIONS = [1.0, 1e2, 1e4, 1e6]
RANKS = [1, 3, 16, 20]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("rank", RANKS)
def test_component_masking_is_exact(rank, condition):
    parent = random_adapter(0, rank, gauge_condition=condition)
    child = make("component_masking", [parent])
    for layer in parent.factors:
        before = dense(parent, layer)
        U, S, Vt = torch.linalg.svd(before, full_matrices=False)
        shares = ((U.mT @ dense(child, layer) @ Vt.mT).diagonal()[: len(S)] / S)[
            : min(rank, *before.shape)
        ]
        keep = shares > 0.5
        assert rank - int(keep.sum()) == math.ceil(0.3 * rank) or rank > min(before.shape)
        r = len(keep)
        expected = U[:, :r] * (S[:r] * keep) @ Vt[:r]
        assert relative_error(dense(child, layer), expected) <= 1e-5


def test_component_masking_drops_other_components_in_each_layer_and_all_equally_often():
    parent = random_adapter(0, 10)
    counts = torch.zeros(10)
    seen = set()
    for seed in range(60):
        child = make("component_masking", [parent], seed)
        for layer in parent.factors:
            U, S, Vt = torch.linalg.svd(dense(parent, layer), full_matrices=False)
            shares = (U.mT @ dense(child, layer) @ Vt.mT).diagonal()[:10] / S[:10]
            counts += shares < 0.5
            seen.add(tuple((shares < 0.5).tolist()))
    assert counts.sum() == 60 * 4 * 3
    assert len(seen) > 60
    assert counts.min() > 72 * 0.6 and counts.max() < 72 * 1.4


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("rank", RANKS)
def test_svd_structured_is_exact(rank, condition):
    """The rotations and growths are read off a child and applied to the dense SVD."""
    parent = random_adapter(0, rank, gauge_condition=condition)
    child = make("svd_structured", [parent], eps=0.1)
    # The operator's own draws, in its order, for its layers and rank.
    generator = torch.Generator().manual_seed(0)
    layers = len(parent.factors)
    z = torch.randn(layers, rank, generator=generator).double()
    M, N = (torch.randn(layers, rank, rank, generator=generator).double() for _ in range(2))
    for index, layer in enumerate(parent.factors):
        before = dense(parent, layer)
        r = min(rank, *before.shape)
        U, S, Vt = torch.linalg.svd(before, full_matrices=False)
        U, S, Vt = U[:, :r], S[:r], Vt[:r]
        probe = torch.arange(1, before.shape[1] + 1, dtype=torch.float64).sin()
        signs = (Vt @ probe).sign()
        U, Vt = U * signs, Vt * signs[:, None]
        left, right = ((m[index] - m[index].mT)[:r, :r] / 2 for m in (M, N))
        eye = torch.eye(r, dtype=torch.float64)
        core = (eye + 0.1 * left) * (S * torch.exp(0.1 * z[index, :r])) @ (eye + 0.1 * right).mT
        assert relative_error(dense(child, layer), U @ core @ Vt) <= 1e-5


def test_svd_structured_leaves_zero_components_alone():
    """A member of true rank 2 stays one of rank 2, within the space that it has."""
    parent = random_adapter(0, 6, true_rank=2)
    child = make("svd_structured", [parent])
    for layer in parent.factors:
        U, _, Vt = torch.linalg.svd(dense(parent, layer), full_matrices=False)
        inside = U[:, :2] @ U[:, :2].mT @ dense(child, layer) @ Vt[:2].mT @ Vt[:2]
        assert relative_error(dense(child, layer), inside) <= 1e-5


@pytest.mark.parametrize("eps", [0.02, 0.15])
def test_factor_noise_is_as_large_as_documented(eps):
    """On both factors of a random member it changes dW by sqrt(2 eps^2 + eps^4), within rank r."""
    generator = torch.Generator().manual_seed(0)
    shapes = {"layer": (300, 200)}
    parent = random_adapter(0, 8, shapes=shapes)
    for pair in parent.factors.values():
        pair.A.normal_(generator=generator)
        pair.B.normal_(generator=generator)
    child = make("full_gaussian", [parent], seed=1, eps=eps)
    before, after = dense(parent, "layer"), dense(child, "layer")
    assert relative_error(after, before) == pytest.approx(math.sqrt(2 * eps**2 + eps**4), rel=0.05)
    assert torch.linalg.matrix_rank(after, rtol=1e-5) == 8


def test_layer_selective_gaussian_touches_a_third_and_at_least_one():
    shapes = {f"layer_{i}": (6, 5) for i in range(9)}
    parent = random_adapter(0, 2, shapes=shapes)
    for fraction, expected in ((0.34, 3), (0.33, 2), (0.0, 1), (1.0, 9)):
        child = make("layer_selective_gaussian", [parent], fraction=fraction)
        changed = [n for n, f in child.factors.items() if not torch.equal(f.A, parent.factors[n].A)]
        assert len(changed) == expected
        for name in changed:
            assert not torch.equal(child.factors[name].B, parent.factors[name].B)
    chosen = {
        name
        for seed in range(40)
        for name, f in make("layer_selective_gaussian", [parent], seed).factors.items()
        if not torch.equal(f.A, parent.factors[name].A)
    }
    assert len(chosen) == 9
