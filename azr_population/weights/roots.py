"""Gram matrices of tall factors, and their k x k roots: the reading half of `lowrank`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from azr_population.errors import UserError
from azr_population.weights.adapter import Factors

EPS = torch.finfo(torch.float64).eps


@dataclass(frozen=True)
class Term:
    """One summand of a layer's update: weight * B A diag(columns).

    `columns` is [in] in any real dtype, or None for ones.
    """

    factors: Factors
    weight: float = 1.0
    columns: Tensor | None = None


@dataclass(frozen=True)
class Layer:
    """A layer's update as the sum of its terms, as if their factors were concatenated: B [out, k],
    A [k, in] with k the sum of the terms' ranks."""

    name: str
    terms: tuple[Term, ...]


class Grams:
    """`B`, `A`: the Gram matrices of the layers' concatenated factors, [M, k, k] float64; `probed`:
    A times a fixed vector, [M, k]."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        some = layers[0].terms[0].factors.A
        k = _total_rank(layers[0])
        empty = partial(torch.empty, dtype=torch.float64, device=some.device)
        self.B = empty(len(layers), k, k)
        self.A = empty(len(layers), k, k)
        self.probed = empty(len(layers), k)
        widest = max(max(_shape(layer)) for layer in layers)
        buffer = empty(widest * k)
        probe = torch.arange(1, widest + 1, dtype=torch.float64, device=some.device).sin()
        for index, layer in enumerate(layers):
            outputs, inputs = _shape(layer)
            B = _concatenated_B(layer, buffer[: outputs * k].view(outputs, k))
            torch.mm(B.t(), B, out=self.B[index])
            A = _concatenated_A(layer, buffer[: inputs * k].view(k, inputs))
            torch.mm(A, A.t(), out=self.A[index])
            torch.mv(A, probe[:inputs], out=self.probed[index])
        finite = torch.isfinite(self.A.sum((1, 2)) + self.B.sum((1, 2))).tolist()
        if not all(finite):
            name = layers[finite.index(False)].name
            raise UserError(f"a parent holds a value that is not finite (NaN or Inf) in {name}")


@dataclass
class Roots:
    """W with W^T W = Gram and W^+ with F W^+ orthonormal (or zero) columns, [M, k, k]; `unresolved`
    [M]: the norm of those directions of the factor, scaled to unit vectors, that are uncertain."""

    root: Tensor
    inverse: Tensor
    unresolved: Tensor


def roots_of(gram: Tensor) -> Roots:
    """From Gram matrices [M, k, k], by eigenvalues of the Grams of unit vectors."""
    scale = diagonal(gram).clamp_min(0).sqrt()
    inverse = torch.where(scale > 0, 1 / scale, 0.0)
    unit = inverse[:, :, None] * gram * inverse[:, None, :]
    diagonal(unit).fill_(1.0)
    values, vectors = torch.linalg.eigh(unit)
    top = values[:, -1:]
    kept = values > 32 * EPS * top
    sizes = values.clamp_min(0).sqrt()
    # Below 1e-5 of the factor a direction is lost to rounding by more than 1e-6 of itself.
    unresolved = torch.where(values > 1e-10 * top, 0.0, values.clamp_min(4 * EPS * top))
    return _scaled_roots(sizes, vectors, kept, scale, inverse, unresolved.sum(-1).sqrt())


def exact_roots(layer: Layer) -> tuple[Roots, Roots]:
    """The same from Householder QR of the factors in float64, [1, k, k] each."""
    outputs, inputs = _shape(layer)
    k = _total_rank(layer)
    some = layer.terms[0].factors.A
    empty = partial(torch.empty, dtype=torch.float64, device=some.device)
    B = _concatenated_B(layer, empty(outputs, k))
    A = _concatenated_A(layer, empty(k, inputs)).t()
    roots = []
    for factor in (B, A):
        scale = factor.norm(dim=0)
        inverse = torch.where(scale > 0, 1 / scale, 0.0)
        triangle = torch.linalg.qr(factor * inverse, mode="r").R
        _, sizes, vectors = torch.linalg.svd(triangle, full_matrices=True)
        sizes = torch.nn.functional.pad(sizes, (0, k - len(sizes)))
        kept = sizes > k * EPS * sizes[:1]
        none = empty(1).zero_()
        roots.append(
            _scaled_roots(
                sizes[None], vectors.mT[None], kept[None], scale[None], inverse[None], none
            )
        )
    return roots[0], roots[1]


def _scaled_roots(
    sizes: Tensor, vectors: Tensor, kept: Tensor, scale: Tensor, inverse: Tensor, unresolved: Tensor
) -> Roots:
    sizes = torch.where(kept, sizes, 0.0)
    inverse_sizes = torch.where(kept, 1 / sizes, 0.0)
    return Roots(
        sizes[:, :, None] * vectors.mT * scale[:, None, :],
        inverse[:, :, None] * vectors * inverse_sizes[:, None, :],
        unresolved,
    )


def diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=1, dim2=2)


def _total_rank(layer: Layer) -> int:
    return sum(term.factors.A.shape[0] for term in layer.terms)


def _shape(layer: Layer) -> tuple[int, int]:
    """(outputs, inputs)."""
    factors = layer.terms[0].factors
    return factors.B.shape[0], factors.A.shape[1]


def _concatenated_B(layer: Layer, out: Tensor) -> Tensor:
    start = 0
    for term in layer.terms:
        part = out[:, start : start + term.factors.B.shape[1]]
        part.copy_(term.factors.B)
        if term.weight != 1.0:
            part.mul_(term.weight)
        start += part.shape[1]
    return out


def _concatenated_A(layer: Layer, out: Tensor) -> Tensor:
    start = 0
    for term in layer.terms:
        part = out[start : start + term.factors.A.shape[0]]
        part.copy_(term.factors.A)
        if term.columns is not None:
            part.mul_(term.columns)
        start += part.shape[0]
    return out
