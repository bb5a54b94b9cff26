"""How alike members are: the cosine of their updates dW, over all layers together."""

from collections.abc import Sequence
from itertools import combinations

import torch

from azr_population.weights.adapter import Adapter


def mean_cosine(adapters: Sequence[Adapter]) -> float | None:
    """The mean over pairs of cos(dW_i, dW_j), in [-1, 1]; None where no pair has two updates.

    Adapters may have different ranks; they must adapt the same layers. A member that has not
    learned yet (dW = 0) has no direction and is left out.
    """
    products = inner_products(adapters)
    norms = products.diagonal().sqrt()
    cosines = [
        float(products[i, j] / (norms[i] * norms[j]))
        for i, j in combinations(range(len(adapters)), 2)
        if norms[i] > 0 and norms[j] > 0
    ]
    return sum(cosines) / len(cosines) if cosines else None


def inner_products(adapters: Sequence[Adapter]) -> torch.Tensor:
    """<dW_i, dW_j> for every pair; float64 [P, P].

    dW is never formed: <B A, D C> is the sum of (B^T D) * (A C^T), rank by rank. All members'
    factors are laid side by side, so that one product holds every pair.
    """
    ranks = [adapter.spec.rank for adapter in adapters]
    overlap = torch.zeros(sum(ranks), sum(ranks), dtype=torch.float64)
    for name in adapters[0].factors:
        A = torch.cat([one.factors[name].A.double() for one in adapters])
        B = torch.cat([one.factors[name].B.double() * one.spec.scaling for one in adapters], dim=1)
        overlap += (B.T @ B) * (A @ A.T)
    members = torch.block_diag(*(torch.ones(1, rank, dtype=torch.float64) for rank in ranks))
    return members @ overlap @ members.T
