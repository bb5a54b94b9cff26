"""Linear algebra on low-rank updates dW = B A, without ever forming dW.

With B = Q_B R_B and A^T = Q_A R_A, Q of orthonormal columns, the k x k core R_B R_A^T has the
singular values of dW. All in float64: factors may be ill-conditioned where dW is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from azr_population.weights.adapter import Adapter, Factors, LoraSpec

ROW_NORM = 3**-0.5
"""Expected norm of a row of U(-1/sqrt(in), 1/sqrt(in)), PEFT's initialisation of A."""


WELL_CONDITIONED = 1e3
"""Up to this condition of a factor its Gram matrix keeps 10 digits."""


class Spectrum(NamedTuple):
    """The thin SVD dW = left diag(singular) right of one layer's update.

    `left` [out, k], `singular` [k], descending, `right` [k, in]; float64. If k exceeds the layer's
    full rank, the remaining singular values and vectors are zero.
    """

    left: Tensor
    singular: Tensor
    right: Tensor

    def factors(self, rank: int, dtype: torch.dtype) -> Factors:
        """Factors (see `scaled`) of the best approximation of that rank (Eckart-Young)."""
        left = self.left[:, :rank] * self.singular[:rank]
        return scaled(left, self.right[:rank], dtype)


def decompose(B: Tensor, A: Tensor) -> Spectrum:
    """The SVD of B [out, k] @ A [k, in]; any real dtype, finite values."""
    (tall_B, to_Q_B, R_B), (tall_A, to_Q_A, R_A) = (
        _orthogonal(B.double()),
        _orthogonal(A.double().mT),
    )
    U, singular, Vt = torch.linalg.svd(R_B @ R_A.mT, full_matrices=False)
    left = tall_B @ (to_Q_B @ U).to(B.device)
    right = (Vt @ to_Q_A.mT).to(A.device) @ tall_A.mT
    singular = singular.to(B.device)
    # The sign of a pair of singular vectors is arbitrary: a fixed probe chooses it.
    probe = torch.arange(1, A.shape[1] + 1, dtype=torch.float64, device=A.device).sin()
    signs = torch.where(right @ probe < 0, -1.0, 1.0)
    missing = B.shape[1] - len(singular)
    return Spectrum(
        pad(left * signs, (0, missing)),
        pad(singular, (0, missing)),
        pad(right * signs[:, None], (0, 0, 0, missing)),
    )


def _orthogonal(tall: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(T, C, R) with Q = T C of orthonormal columns and Q R = `tall` [many, k], in float64.

    By the Gram matrix [k, k], which squares the condition: where that costs digits, by QR. C and R
    are on the CPU, which is faster with matrices that small than a GPU.
    """
    squares, vectors = torch.linalg.eigh((tall.mT @ tall).cpu())
    if tall.shape[0] < tall.shape[1] or not squares[0] > WELL_CONDITIONED**-2 * squares[-1]:
        Q, R = torch.linalg.qr(tall)
        return Q, torch.eye(Q.shape[1], dtype=Q.dtype), R.cpu()
    lengths = squares.sqrt()
    return tall, vectors / lengths, lengths[:, None] * vectors.mT


def scaled(left: Tensor, right: Tensor, dtype: torch.dtype) -> Factors:
    """Factors of left @ right, scaled like a fresh LoRA: rows of A have the norm of PEFT's
    initialisation. The rows of `right` [r, in] have norm 1."""
    return Factors((right * ROW_NORM).to(dtype), (left / ROW_NORM).to(dtype).contiguous())


def convert(adapter: Adapter, rank: int, alpha: float, generator: torch.Generator) -> Adapter:
    """The adapter with the same dW = alpha/rank B A at another alpha and no lower rank.

    B is scaled for alpha. For the rank A gets new rows from PEFT's initialisation and B zero
    columns, so the new components can be learned.
    """
    spec = LoraSpec(rank, alpha, adapter.spec.target_modules)
    ratio = adapter.spec.scaling / spec.scaling
    converted = {}
    for name, pair in adapter.factors.items():
        inputs = pair.A.shape[1]
        fresh = torch.empty(rank - adapter.spec.rank, inputs, device=generator.device)
        bound = 1 / math.sqrt(inputs)
        fresh.uniform_(-bound, bound, generator=generator)
        zeros = pair.B.new_zeros(pair.B.shape[0], rank - adapter.spec.rank)
        converted[name] = Factors(
            torch.cat([pair.A, fresh.to(pair.A.device, pair.A.dtype)]),
            torch.cat([pair.B if ratio == 1.0 else pair.B * ratio, zeros], dim=1),
        )
    return Adapter(spec, converted)


def mean_cosine(adapters: Sequence[Adapter]) -> float | None:
    """The mean over pairs of cos(dW_i, dW_j), in [-1, 1]; None without a pair.

    Adapters must have the same layers; ranks may differ. Untrained members (dW = 0) have no
    direction and are left out.
    """
    products = inner_products(adapters)
    norms = products.diagonal().sqrt()
    cosines = [
        float(products[i, j] / (norms[i] * norms[j]))
        for i, j in combinations(range(len(adapters)), 2)
        if norms[i] > 0 and norms[j] > 0
    ]
    return sum(cosines) / len(cosines) if cosines else None


def inner_products(adapters: Sequence[Adapter]) -> Tensor:
    """<dW_i, dW_j> for every pair; float64 [P, P].

    dW is never formed: <B A, D C> is the sum of (B^T D) * (A C^T). All members' factors are
    concatenated, so that one product has every pair.
    """
    ranks = [adapter.spec.rank for adapter in adapters]
    overlap = torch.zeros(sum(ranks), sum(ranks), dtype=torch.float64)
    for name in adapters[0].factors:
        A = torch.cat([adapter.factors[name].A.double() for adapter in adapters])
        B = torch.cat(
            [adapter.factors[name].B.double() * adapter.spec.scaling for adapter in adapters], dim=1
        )
        overlap += (B.T @ B) * (A @ A.T)
    members = torch.block_diag(*(torch.ones(1, rank, dtype=torch.float64) for rank in ranks))
    return members @ overlap @ members.T
