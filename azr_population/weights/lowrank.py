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

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import torch
from torch import Tensor

from azr_population.weights.adapter import Adapter, Factors, LoraSpec

TOLERANCE = 2e-6
"""Estimated error, relative to dW, above which the slower and more exact way is taken."""
_EPS = torch.finfo(torch.float64).eps
ROW_NORM = 3**-0.5
"""Length of the rows of a child's A: that of U(-1/sqrt(in), 1/sqrt(in)), PEFT's start."""


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
    """The thin SVD of every layer's update; factors have to be finite."""
    grams = _Grams(layers)
    B, A = _roots_of(grams.B), _roots_of(grams.A)
    core = _Core.of(B, A)
    weight = (_diagonal(grams.B) * _diagonal(grams.A)).sum(-1).sqrt()
    doubt = (B.unresolved + A.unresolved) * weight
    for index in (doubt > TOLERANCE * core.singular.norm(dim=-1)).nonzero().flatten().tolist():
        one = slice(index, index + 1)
        exact_B, exact_A = _exact_roots(layers[index])
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
    apart = (_diagonal(outer) * _diagonal(inner)).sum(-1)
    return _ratio(apart, (outer * inner).sum((1, 2)))


def _needs_float64(
    left: Tensor | None, right: Tensor | None, gram_B: Tensor, gram_A: Tensor
) -> Tensor:
    """[M] bool: whether float32 products could cost more than TOLERANCE of the child's dW."""
    outer = gram_B if left is None else left.mT @ gram_B @ left
    inner = gram_A if right is None else right @ gram_A @ right.mT
    error = torch.zeros_like(outer[:, 0, 0])
    if left is not None:
        apart = _diagonal(gram_B)[:, :, None] * left.square() * _diagonal(inner)[:, None, :]
        error += apart.sum((1, 2))
    if right is not None:
        apart = _diagonal(gram_A)[:, None, :] * right.square() * _diagonal(outer)[:, :, None]
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
    def of(cls, B: _Roots, A: _Roots) -> _Core:
        P, singular, Qt = torch.linalg.svd(B.root @ A.root.mT)
        return cls(singular, B.inverse @ P, A.root.mT @ Qt.mT, Qt @ A.inverse.mT)

    def put(self, where: slice, other: _Core) -> None:
        """Replaces some layers' parts in place."""
        for name in vars(self):
            getattr(self, name)[where] = getattr(other, name)


class _Grams:
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


@dataclass
class _Roots:
    """W with W^T W = Gram and W^+ with F W^+ orthonormal (or zero) columns, [M, k, k]; `unresolved`
    [M]: the norm of those directions of the factor, scaled to unit vectors, that are uncertain."""

    root: Tensor
    inverse: Tensor
    unresolved: Tensor


def _roots_of(gram: Tensor) -> _Roots:
    """From Gram matrices [M, k, k], by eigenvalues of the Grams of unit vectors."""
    scale = _diagonal(gram).clamp_min(0).sqrt()
    inverse = torch.where(scale > 0, 1 / scale, 0.0)
    unit = inverse[:, :, None] * gram * inverse[:, None, :]
    _diagonal(unit).fill_(1.0)
    values, vectors = torch.linalg.eigh(unit)
    top = values[:, -1:]
    kept = values > 32 * _EPS * top
    sizes = values.clamp_min(0).sqrt()
    # Below 1e-5 of the factor a direction is lost to rounding by more than 1e-6 of itself.
    unresolved = torch.where(values > 1e-10 * top, 0.0, values.clamp_min(4 * _EPS * top))
    return _scaled_roots(sizes, vectors, kept, scale, inverse, unresolved.sum(-1).sqrt())


def _exact_roots(layer: Layer) -> tuple[_Roots, _Roots]:
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
        kept = sizes > k * _EPS * sizes[:1]
        none = empty(1).zero_()
        roots.append(
            _scaled_roots(
                sizes[None], vectors.mT[None], kept[None], scale[None], inverse[None], none
            )
        )
    return roots[0], roots[1]


def _scaled_roots(
    sizes: Tensor, vectors: Tensor, kept: Tensor, scale: Tensor, inverse: Tensor, unresolved: Tensor
) -> _Roots:
    sizes = torch.where(kept, sizes, 0.0)
    inverse_sizes = torch.where(kept, 1 / sizes, 0.0)
    return _Roots(
        sizes[:, :, None] * vectors.mT * scale[:, None, :],
        inverse[:, :, None] * vectors * inverse_sizes[:, None, :],
        unresolved,
    )


def _diagonal(matrices: Tensor) -> Tensor:
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


def convert(adapter: Adapter, rank: int, alpha: float, generator: torch.Generator) -> Adapter:
    """The adapter with another rank and alpha, and the same dW = alpha/rank B A where it can be.

    Another alpha: B is scaled, dW stays. A higher rank: rows drawn like PEFT's start are added to A
    and zero columns to B, dW stays and the new components can be learned. A lower rank: the best
    approximation of dW (Eckart-Young), with the singular values in B and orthogonal rows in A.
    """
    spec = LoraSpec(rank, alpha, adapter.spec.target_modules)
    ratio = adapter.spec.scaling / spec.scaling
    names = list(adapter.factors)
    if rank < adapter.spec.rank:
        layers = [Layer(name, (Term(adapter.factors[name], ratio),)) for name in names]
        spectrum = decompose(layers)
        factors = combine(
            layers,
            spectrum.scaled_left[:, :, :rank] / ROW_NORM,
            spectrum.right[:, :rank] * ROW_NORM,
            spectrum.gram_B,
            spectrum.gram_A,
        )
        return Adapter(spec, dict(zip(names, factors, strict=True)))
    converted = {}
    for name in names:
        pair = adapter.factors[name]
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


def inner_products(adapters: Sequence[Adapter]) -> Tensor:
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
