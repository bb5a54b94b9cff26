"""Random adapters, and the dense float64 updates that operators are held against."""

import torch

from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.breeding import get_operator

SHAPES = {"q_proj": (24, 20), "k_proj": (12, 20), "up_proj": (40, 20), "down_proj": (20, 40)}


def random_adapter(
    seed, rank=4, alpha=8.0, dtype=torch.float32, shapes=SHAPES, true_rank=None, gauge_condition=1.0
):
    """dW has singular values from 1 down to 0.1 (`true_rank` of them, then zeros); the factors
    are then mixed by a random matrix of the given condition number."""
    generator = torch.Generator().manual_seed(seed)
    factors = {}
    for name, (outputs, inputs) in shapes.items():
        components = min(rank, outputs, inputs, rank if true_rank is None else true_rank)
        U = torch.linalg.qr(_normal(outputs, components, generator)).Q
        V = torch.linalg.qr(_normal(inputs, components, generator)).Q
        S = (
            torch.logspace(0, -1, components, dtype=torch.float64)
            if components
            else torch.zeros(0).double()
        )
        B = torch.zeros(outputs, rank, dtype=torch.float64)
        A = torch.zeros(rank, inputs, dtype=torch.float64)
        B[:, :components], A[:components] = U * S, V.mT
        left, _, right = torch.linalg.svd(_normal(rank, rank, generator))
        stretch = (
            torch.logspace(0, 1, rank, dtype=torch.float64)
            ** torch.tensor(gauge_condition).log10().item()
        )
        G = left * stretch @ right
        inverse = right.mT / stretch @ left.mT
        factors[name] = Factors((inverse @ A).to(dtype), (B @ G).to(dtype))
    return Adapter(LoraSpec(rank, alpha, tuple(shapes)), factors)


def loud(member, seed):
    """An adapter of a member's shape that changes much."""
    generator = torch.Generator().manual_seed(seed)
    factors = {
        name: Factors(
            torch.randn(pair.A.shape, generator=generator) / pair.A.shape[1] ** 0.5,
            torch.randn(pair.B.shape, generator=generator) * 0.1,
        )
        for name, pair in member.factors.items()
    }
    return Adapter(member.spec, factors)


def make(name, parents, seed=0, **options):
    """The child by the operator of that name."""
    return get_operator(name)(parents, torch.Generator().manual_seed(seed), **options)


def dense(adapter, name):
    """B A in float64, [out, in]."""
    pair = adapter.factors[name]
    return pair.B.double() @ pair.A.double()


def relative_error(actual, expected):
    """Frobenius norm of the difference over that of the expected."""
    size = expected.norm()
    return float((actual - expected).norm() / (size if size > 0 else 1.0))


def truncated(matrix, rank):
    """The best approximation of that rank."""
    U, S, Vt = torch.linalg.svd(matrix, full_matrices=False)
    return U[:, :rank] * S[:rank] @ Vt[:rank]


def same(first, second):
    """Whether all factors are equal, bit for bit."""
    return first.factors.keys() == second.factors.keys() and all(
        torch.equal(pair.A, second.factors[name].A) and torch.equal(pair.B, second.factors[name].B)
        for name, pair in first.factors.items()
    )


def _normal(rows, columns, generator):
    return torch.randn(rows, columns, dtype=torch.float64, generator=generator)
