"""Linear algebra on low-rank updates dW = B A, without ever forming dW.

With B = Q_B R_B and A^T = Q_A R_A, Q of orthonormal columns, the k x k core R_B R_A^T has the
singular values of dW. All in float64: factors may be ill-conditioned where dW is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, islice
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from azr_population.weights.adapter import Adapter, Factors, LoraSpec

ROW_NORM = 3**-0.5
"""Expected norm of a row of U(-1/sqrt(in), 1/sqrt(in)), PEFT's initialisation of A."""


WELL_CONDITIONED = 1e2
"""Up to some ten times this condition of a factor its Gram matrix keeps 10 digits."""

LAYERS_AT_ONCE = 64
"""Layers of which a copy in float64 is held: 0.4 GB at a 7B base's shapes, rank 64."""


class Spectrum(NamedTuple):
    """The thin SVD dW = (B U) diag(S) (V A) of one layer's update B [out, k] A [k, in].

    `U` [k, k] and `V` [k, k] are small, so that an operator changes them before the tall factors
    are multiplied once. B U has orthonormal columns and V A orthonormal rows; S descends. All on
    the CPU but B and A; float64. If k exceeds the layer's full rank, the remaining singular values
    and vectors are zero.
    """

    B: Tensor
    U: Tensor
    S: Tensor
    V: Tensor
    A: Tensor

    def child(self, left: Tensor, right: Tensor, dtype: torch.dtype) -> Factors:
        """Factors of (B `left`) (`right` A), for `left` [k, r] and `right` [r, k] made of U, S and
        V: scaled like a fresh LoRA, if `right` A has rows of norm 1."""
        left, right = (
            small.to(self.A.device, non_blocking=True)
            for small in (left / ROW_NORM, right * ROW_NORM)
        )
        return Factors((right @ self.A).to(dtype), (self.B @ left).to(dtype))

    def best(self, rank: int, dtype: torch.dtype) -> Factors:
        """Factors of the best approximation of that rank (Eckart-Young)."""
        return self.child((self.U * self.S)[:, :rank], self.V[:rank], dtype)


def decompose_all(layers: Iterable[tuple[Tensor, Tensor]]) -> Iterator[Spectrum]:
    """The SVD of each layer's B [out, k] @ A [k, in], in order; one k, any real dtype, finite
    values. The CPU waits for a GPU twice for `LAYERS_AT_ONCE` layers, and decomposes their small
    matrices in as many threads as torch has."""
    layers = iter(layers)
    while batch := [(B.double(), A.double().mT) for B, A in islice(layers, LAYERS_AT_ONCE)]:
        grams = _to_cpu([factor.mT @ factor for pair in batch for factor in pair])
        probed = _to_cpu([A.mT @ _probe(A) for _, A in batch])
        columns = (*zip(*batch, strict=True), grams[::2], grams[1::2], probed)
        if (threads := min(len(batch), torch.get_num_threads())) == 1:
            yield from map(_spectrum, *columns)
        else:
            with ThreadPoolExecutor(threads) as pool:
                yield from list(pool.map(_spectrum, *columns))


def _spectrum(B: Tensor, A: Tensor, gram_B: Tensor, gram_A: Tensor, probed: Tensor) -> Spectrum:
    """The SVD of B [out, k] @ A.T [k, in] by the Gram matrices of both and A.T @ `_probe(A)`."""
    k = B.shape[1]
    (Q_B, to_Q_B, R_B), (Q_A, to_Q_A, R_A) = _orthogonal(B, gram_B), _orthogonal(A, gram_A)
    U, S, V = torch.linalg.svd(R_B @ R_A.mT, full_matrices=False)
    U, V = to_Q_B @ U, V @ to_Q_A.mT
    if Q_A is not A:
        probed = (Q_A.mT @ _probe(A)).cpu()
    signs = torch.where(V @ probed < 0, -1.0, 1.0)
    missing = k - len(S)
    U, V = pad(U * signs, (0, missing)), pad(V * signs[:, None], (0, 0, 0, missing))
    return Spectrum(Q_B, U, pad(S, (0, missing)), V, Q_A.mT)


def _probe(A: Tensor) -> Tensor:
    """A fixed vector [in] that chooses the sign of a pair of singular vectors, which is
    arbitrary."""
    return torch.arange(1, len(A) + 1, dtype=torch.float64, device=A.device).sin()


def _to_cpu(tensors: list[Tensor]) -> list[Tensor]:
    """Copies of tensors of one shape, for which a GPU is waited for once; on a CPU themselves."""
    return list(torch.stack(tensors).cpu()) if tensors[0].device.type != "cpu" else tensors


def _orthogonal(tall: Tensor, gram: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(T, C, R) with Q = T C of orthonormal columns and Q R = `tall` [many, k], in float64.

    By the Gram matrix [k, k], which squares the condition: where that costs digits, by QR. C and R
    are on the CPU, as `gram` is: it is faster with matrices that small than a GPU.
    """
    L, failed = torch.linalg.cholesky_ex(gram)
    if not failed:
        eye = torch.eye(len(L), dtype=L.dtype)
        C = torch.linalg.solve_triangular(L, eye, upper=False).mT
        if float(L.norm() * C.norm()) < len(L) * WELL_CONDITIONED:  # at least the condition
            return tall, C, L.mT
    Q, R = torch.linalg.qr(tall)
    return Q, torch.eye(Q.shape[1], dtype=Q.dtype), R.cpu()


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
    direction and are left out. dW is never formed: <B A, D C> is the sum of (B^T D) * (A C^T). All
    members' factors are concatenated, so that one product has every pair.
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
    products = members @ overlap @ members.T
    norms = products.diagonal().sqrt()
    cosines = [
        float(products[i, j] / (norms[i] * norms[j]))
        for i, j in combinations(range(len(adapters)), 2)
        if norms[i] > 0 and norms[j] > 0
    ]
    return sum(cosines) / len(cosines) if cosines else None
