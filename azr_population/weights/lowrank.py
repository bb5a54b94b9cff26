"""Linear algebra on low-rank updates dW = sum_t w_t B_t A_t, without ever forming dW.

A layer's update is decomposed in the coordinates of its own factors: with Gram matrices
B^T B = W_B^T W_B and A A^T = W_A^T W_A (k x k), the core C = W_B W_A^T = P S Q^T has the singular
values of dW, and U = B W_B^+ P, V^T = Q^T (W_A^+)^T A. So the tall factors are read once for the
Grams and once for the result, and everything between is k x k, batched over all layers of a member
whatever their shapes.

A Gram squares the condition number, so Grams and cores are float64, with the factors' vectors
scaled to length 1. What float64 cannot resolve (directions below 1e-7 of the factor) is estimated,
and where it could matter the layer's Grams are replaced by a Householder QR. Products with the
factors run in float32 unless an estimate of their rounding says that they need float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from azr_population.weights.adapter import Factors
from azr_population.weights.roots import (
    Grams,
    Layer,
    Roots,
    Term,
    diagonal,
    exact_roots,
    roots_of,
)

TOLERANCE = 2e-6
"""Estimated error, relative to dW, above which the slower and more exact way is taken."""


@dataclass(frozen=True)
class Decomposition:
    """The thin SVD of M layers' updates, all of one k, in the coordinates of their factors.

    With B, A the concatenated factors: U = B left, U diag(singular) = B scaled_left, V^T = right A.
    All float64: `singular` [M, k], descending; the others [M, k, k]. `gram_B`, `gram_A` are B^T B
    and A A^T. Vectors of zero singular values may be zero. Signs are fixed by dW alone.
    """

    layers: tuple[Layer, ...]
    singular: Tensor
    left: Tensor
    scaled_left: Tensor
    right: Tensor
    gram_B: Tensor
    gram_A: Tensor

    def __getitem__(self, part: slice) -> Decomposition:
        """Some of the layers."""
        return replace(self, **{name: getattr(self, name)[part] for name in vars(self)})


def decompose(layers: Sequence[Layer]) -> Decomposition:
    """The thin SVD of every layer's update. Raises UserError when a factor holds a value that is
    not finite."""
    grams = Grams(layers)
    B, A = roots_of(grams.B), roots_of(grams.A)
    core = _Core.of(B, A)
    weight = (diagonal(grams.B) * diagonal(grams.A)).sum(-1).sqrt()
    doubt = (B.unresolved + A.unresolved) * weight
    for index in (doubt > TOLERANCE * core.singular.norm(dim=-1)).nonzero().flatten().tolist():
        one = slice(index, index + 1)
        exact_B, exact_A = exact_roots(layers[index])
        core.put(one, _Core.of(exact_B, exact_A))
    # The sign of a pair of singular vectors is free: a fixed probe decides it, whatever the gauge.
    signs = torch.where((core.right @ grams.probed[..., None])[..., 0] < 0, -1.0, 1.0)
    return Decomposition(
        tuple(layers),
        core.singular,
        core.left * signs[:, None, :],
        core.scaled_left * signs[:, None, :],
        core.right * signs[:, :, None],
        grams.B,
        grams.A,
    )


def combine(
    layers: Sequence[Layer],
    left: Tensor | None,
    right: Tensor | None,
    gram_B: Tensor,
    gram_A: Tensor,
) -> list[Factors]:
    """New factors B left [out, r] and right A [r, in] of every layer, in the dtype of the first
    term's factors.

    `left` is [M, k, r], `right` [M, r, k], float64; None copies that factor (of a single term).
    The Grams only serve to estimate rounding.
    """
    exact = _needs_float64(left, right, gram_B, gram_A).tolist()
    children = []
    for index, layer in enumerate(layers):
        first = layer.terms[0].factors
        inner = torch.float64 if exact[index] else torch.float32
        if left is None:
            B = first.B.clone()
        else:
            parts = left[index].to(inner).split([t.factors.A.shape[0] for t in layer.terms])
            B = _sum_of_products(
                [
                    (term.factors.B.to(inner), part * term.weight)
                    for term, part in zip(layer.terms, parts, strict=True)
                ]
            ).to(first.B.dtype)
        if right is None:
            A = first.A.clone()
        else:
            parts = right[index].to(inner).split([t.factors.A.shape[0] for t in layer.terms], dim=1)
            A = _sum_of_products(
                [
                    (part, _columns(term, term.factors.A.to(inner)))
                    for term, part in zip(layer.terms, parts, strict=True)
                ]
            ).to(first.A.dtype)
        children.append(Factors(A, B))
    return children


def _sum_of_products(pairs: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    total = pairs[0][0] @ pairs[0][1]
    for first, second in pairs[1:]:
        total.addmm_(first, second)
    return total


def _columns(term: Term, A: Tensor) -> Tensor:
    return A if term.columns is None else A * term.columns.to(A.dtype)


def cancellation(
    left: Tensor | None, right: Tensor | None, gram_B: Tensor, gram_A: Tensor
) -> Tensor:
    """[M]: how many times larger the components of (B left)(right A) are than their sum.

    sqrt(sum_j |b_j|^2 |a_j|^2) over |dW|: rounding the new factors once costs dW this many
    roundings (in the root mean square). 1 for orthogonal components; None stands for the identity.
    """
    outer = gram_B if left is None else left.mT @ gram_B @ left
    inner = gram_A if right is None else right @ gram_A @ right.mT
    apart = (diagonal(outer) * diagonal(inner)).sum(-1)
    return _ratio(apart, (outer * inner).sum((1, 2)))


def _needs_float64(
    left: Tensor | None, right: Tensor | None, gram_B: Tensor, gram_A: Tensor
) -> Tensor:
    """[M] bool: whether float32 products could cost more than TOLERANCE of the child's dW."""
    outer = gram_B if left is None else left.mT @ gram_B @ left
    inner = gram_A if right is None else right @ gram_A @ right.mT
    error = torch.zeros_like(outer[:, 0, 0])
    if left is not None:
        apart = diagonal(gram_B)[:, :, None] * left.square() * diagonal(inner)[:, None, :]
        error += apart.sum((1, 2))
    if right is not None:
        apart = diagonal(gram_A)[:, None, :] * right.square() * diagonal(outer)[:, :, None]
        error += apart.sum((1, 2))
    unit = torch.finfo(torch.float32).eps / 2
    return _ratio(error, (outer * inner).sum((1, 2))) * unit > TOLERANCE


def _ratio(squared_part: Tensor, squared_whole: Tensor) -> Tensor:
    """sqrt(part / whole), 0 where the part is 0."""
    part, whole = squared_part.clamp_min(0).sqrt(), squared_whole.clamp_min(0).sqrt()
    return torch.where(part > 0, part / whole, 0.0)


@dataclass
class _Core:
    """The k x k part of the decomposition."""

    singular: Tensor
    left: Tensor
    scaled_left: Tensor
    right: Tensor

    @classmethod
    def of(cls, B: Roots, A: Roots) -> _Core:
        P, singular, Qt = torch.linalg.svd(B.root @ A.root.mT)
        return cls(singular, B.inverse @ P, A.root.mT @ Qt.mT, Qt @ A.inverse.mT)

    def put(self, where: slice, other: _Core) -> None:
        """Replaces some layers' parts in place."""
        for name in vars(self):
            getattr(self, name)[where] = getattr(other, name)
