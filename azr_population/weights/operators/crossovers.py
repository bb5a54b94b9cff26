"""Crossovers: a child from two parents, the better one first.

Combining parents means combining B1 A1 and B2 A2, never A and B apart: (B1 + B2)(A1 + A2) would add
the cross terms B1 A2 and B2 A1, which no parent learned. A sum of two updates has rank 2 r and is
cut back to the best rank r. Names and operations are PopuLoRA's (arXiv 2605.16727); where the paper
gives no value, the defaults are those of the independent package populora 0.4.5.
"""

from collections.abc import Sequence

import torch

from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.lowrank import Layer, Term, combine, decompose
from azr_population.weights.operator import operator
from azr_population.weights.operators.gauge import ROW_NORM, adapter_like, layers_of


@operator(
    "dare",
    code="X1",
    parents=2,
    reference="PopuLoRA X1; Yu et al. 2024, DARE (arXiv 2311.03099)",
    ranges={"p": (0.0, 0.99)},
)
def dare(parents: Sequence[Adapter], generator: torch.Generator, *, p: float = 0.7) -> Adapter:
    """Drops each parent's update at random, rescales what is left, and averages the two.

    DARE drops single entries of dW, which gives full rank. Here whole columns of dW (what the layer
    reads from one input) fall with probability p and the others are multiplied by 1/(1-p). Every
    entry of dW then has DARE's own law, so the mean, the variance, and the noise on each output for
    a given input are the same; but entries of one column fall together. This is a product on A's
    side and exact; the mean of both parents, of rank 2r, is cut back to the best rank r.
    """
    layers = []
    for name, pair in parents[0].factors.items():
        terms = []
        for factors in (pair, parents[1].factors[name]):
            inputs = factors.A.shape[1]
            drawn = torch.rand(inputs, generator=generator, device=generator.device)
            columns = (drawn >= p).to(factors.A.device, torch.float64) / (1 - p)
            terms.append(Term(factors, 0.5, columns))
        layers.append(Layer(name, tuple(terms)))
    return adapter_like(parents[0], _best_of_rank(layers, parents[0].spec.rank))


@operator("layer_wise", code="X2", parents=2, reference="PopuLoRA X2")
def layer_wise(parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
    """Takes each layer whole from one parent or the other, with equal chances. Exact."""
    names = list(parents[0].factors)
    drawn = torch.randint(2, (len(names),), generator=generator, device=generator.device)
    factors = []
    for name, choice in zip(names, drawn.tolist(), strict=True):
        pair = parents[choice].factors[name]
        kept = Factors(pair.A.clone(), pair.B.clone())
        if not torch.isfinite(kept.A.sum(dtype=torch.float32) + kept.B.sum(dtype=torch.float32)):
            raise UserError(f"a parent holds a value that is not finite (NaN or Inf) in {name}")
        factors.append(kept)
    return adapter_like(parents[0], factors)


@operator(
    "svd_subspace",
    code="X3",
    parents=2,
    reference="PopuLoRA X3",
    ranges={"k": (1, float("inf"))},
)
def svd_subspace(
    parents: Sequence[Adapter], generator: torch.Generator, *, k: int | None = None
) -> Adapter:
    """Takes the first k singular components of dW from one parent, the rest from the other.

    k is uniform in 1..r-1 unless given, the same in all layers. Exact: the sum has rank r as it is.
    Depends on the parents' dW only.
    """
    r = parents[0].spec.rank
    if r < 2:
        raise UserError(
            f"svd_subspace needs rank 2 or more, to take components from both; this is rank {r}"
        )
    if k is None:
        k = int(torch.randint(1, r, (), generator=generator, device=generator.device))
    if k != int(k) or not 1 <= k <= r - 1:
        raise UserError(f"svd_subspace: k={k:g} must be a whole number in 1..{r - 1} (rank {r})")
    k = int(k)
    both = decompose([*layers_of(parents[0]), *layers_of(parents[1])])
    count = len(parents[0].factors)
    first, second = both[:count], both[count:]
    layers = [
        Layer(one.name, one.terms + two.terms)
        for one, two in zip(first.layers, second.layers, strict=True)
    ]
    left = both.singular.new_zeros(count, 2 * r, r)
    left[:, :r, :k] = first.scaled_left[:, :, :k]
    left[:, r:, k:] = second.scaled_left[:, :, k:]
    right = both.singular.new_zeros(count, r, 2 * r)
    right[:, :k, :r] = first.right[:, :k]
    right[:, k:, r:] = second.right[:, k:]
    grams = []
    for gram in (both.gram_B, both.gram_A):
        # Without the blocks between the parents: they only serve to estimate rounding.
        block = gram.new_zeros(count, 2 * r, 2 * r)
        block[:, :r, :r], block[:, r:, r:] = gram[:count], gram[count:]
        grams.append(block)
    factors = combine(layers, left / ROW_NORM, right * ROW_NORM, *grams)
    return adapter_like(parents[0], factors)


@operator(
    "extrapolative",
    code="X4",
    parents=2,
    reference="PopuLoRA X4",
    ranges={"eta_min": (0.0, 10.0), "eta_max": (0.0, 10.0)},
)
def extrapolative(
    parents: Sequence[Adapter],
    generator: torch.Generator,
    *,
    eta_min: float = 1.0,
    eta_max: float = 1.5,
) -> Adapter:
    """Goes from the weaker parent through the better one and beyond: w + eta (b - w).

    The better parent is the first; eta is uniform in eta_min..eta_max, the same in all layers. On
    dW, so without cross terms; the sum, of rank 2r, is cut back to the best rank r.
    """
    if eta_min > eta_max:
        raise UserError(f"extrapolative: eta_min={eta_min:g} is above eta_max={eta_max:g}")
    drawn = float(torch.rand((), generator=generator, device=generator.device))
    eta = eta_min + (eta_max - eta_min) * drawn
    better, weaker = parents
    layers = [
        Layer(name, (Term(pair, eta), Term(weaker.factors[name], 1 - eta)))
        for name, pair in better.factors.items()
    ]
    return adapter_like(better, _best_of_rank(layers, better.spec.rank))


def _best_of_rank(layers: Sequence[Layer], rank: int) -> list[Factors]:
    """The best approximation of that rank (Eckart-Young) of every layer's update."""
    spectrum = decompose(layers)
    return combine(
        spectrum.layers,
        spectrum.scaled_left[:, :, :rank] / ROW_NORM,
        spectrum.right[:, :rank] * ROW_NORM,
        spectrum.gram_B,
        spectrum.gram_A,
    )
