"""Mutations: a child from one parent. dW = scaling * B A, of rank r, for every target layer.

Names and operations are PopuLoRA's (arXiv 2605.16727, its eight shipped operators); where the paper
gives no value, the defaults are those of the independent package populora 0.4.5.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.lowrank import cancellation, combine, decompose
from azr_population.weights.operator import operator
from azr_population.weights.operators.gauge import ROW_NORM, adapter_like, layers_of

NEGLIGIBLE = 1e-6
"""Singular values below this share of the largest are rounding: their vectors mean nothing."""

CANCELLATION = 16.0
"""How much of dW's precision may be lost to a parent's factors before they are made new."""


@operator(
    "svd_structured",
    code="M1",
    parents=1,
    reference="PopuLoRA M1",
    ranges={"eps": (0.0, 1.0)},
    step_size="eps",
)
def svd_structured(
    parents: Sequence[Adapter], generator: torch.Generator, *, eps: float = 0.1
) -> Adapter:
    """Rescales the singular values of dW at random and turns its singular bases a little.

    dW = U S V^T becomes U (I + eps K) S exp(eps z) (I + eps L)^T V^T with z ~ N(0, 1) and K, L the
    skew parts (M - M^T)/2 of N(0, 1) matrices. Exact, of rank <= r; depends on dW only. Components
    that are zero stay out of the rotation: their vectors are arbitrary.
    """
    spectrum = decompose(layers_of(parents[0]))
    singular = spectrum.singular
    growth = torch.exp(eps * _normal(singular.shape, generator, singular))
    active = singular > NEGLIGIBLE * singular[:, :1]
    both = active[:, :, None] & active[:, None, :]
    shape = spectrum.left.shape
    turns = [_skew(_normal(shape, generator, singular)) * both * eps for _ in range(2)]
    grown = (singular * growth)[:, None, :]
    left = spectrum.scaled_left * growth[:, None, :] + spectrum.left @ turns[0] * grown
    right = spectrum.right + turns[1].mT @ spectrum.right
    factors = combine(
        spectrum.layers,
        left / ROW_NORM,
        right * ROW_NORM,
        spectrum.gram_B,
        spectrum.gram_A,
    )
    return adapter_like(parents[0], factors)


@operator(
    "layer_selective_gaussian",
    code="M2",
    parents=1,
    reference="PopuLoRA M2",
    ranges={"eps": (0.0, 10.0), "fraction": (0.0, 1.0)},
    step_size="eps",
)
def layer_selective_gaussian(
    parents: Sequence[Adapter],
    generator: torch.Generator,
    *,
    eps: float = 0.1,
    fraction: float = 0.33,
) -> Adapter:
    """Adds Gaussian noise to the factors of a random share of the layers.

    At least one layer. The noise of each factor has eps times that factor's own standard deviation.
    Noise on all of dW would have full rank: noise on the factors stays within rank r; relative to
    dW it is about sqrt(2) eps large, and a factor that is zero stays zero.
    """
    names = list(parents[0].factors)
    count = max(1, int(fraction * len(names)))
    order = torch.randperm(len(names), generator=generator, device=generator.device).tolist()
    return _noisy(parents[0], {names[i] for i in order[:count]}, eps, generator)


@operator(
    "component_masking",
    code="M3",
    parents=1,
    reference="PopuLoRA M3",
    ranges={"rho": (0.0, 1.0)},
)
def component_masking(
    parents: Sequence[Adapter], generator: torch.Generator, *, rho: float = 0.3
) -> Adapter:
    """Sets a random ceil(rho r) of the r singular components of dW to zero, in every layer.

    Exact, of rank r - ceil(rho r); dW depends on the parent's dW only. The smaller of the two
    factors is projected and the other one kept, so the freed directions can be learned anew; only
    where the kept factor's components cancel each other are both made new.
    """
    layers = layers_of(parents[0])
    spectrum = decompose(layers)
    r = parents[0].spec.rank
    scores = torch.rand(len(layers), r, generator=generator, device=generator.device)
    dropped = scores.argsort(dim=1)[:, : math.ceil(rho * r)].to(spectrum.singular.device)
    keep = torch.ones_like(spectrum.singular).scatter_(1, dropped, 0.0)
    kept = spectrum.scaled_left * keep[:, None, :]
    # B (kept right) A: the r x r matrix in the middle may go to either side.
    middle = kept @ spectrum.right
    factors: list[Factors] = []
    for index, layer in enumerate(layers):
        one = slice(index, index + 1)
        grams = spectrum.gram_B[one], spectrum.gram_A[one]
        pair = layer.terms[0].factors
        left, right = (middle[one], None) if len(pair.B) <= pair.A.shape[1] else (None, middle[one])
        if cancellation(left, right, *grams) > CANCELLATION:
            left, right = kept[one] / ROW_NORM, spectrum.right[one] * ROW_NORM
        factors += combine([layer], left, right, *grams)
    return adapter_like(parents[0], factors)


@operator(
    "full_gaussian",
    code="M4",
    parents=1,
    reference="PopuLoRA M4",
    ranges={"eps": (0.0, 10.0)},
    step_size="eps",
)
def full_gaussian(
    parents: Sequence[Adapter], generator: torch.Generator, *, eps: float = 0.15
) -> Adapter:
    """Adds Gaussian noise to the factors of every layer.

    As `layer_selective_gaussian`, everywhere.
    """
    return _noisy(parents[0], set(parents[0].factors), eps, generator)


@operator(
    "neftune_style",
    code="M5",
    parents=1,
    reference="populora 0.4.5 M5, after NEFTune (arXiv 2310.05914); not among the paper's eight",
    ranges={"alpha": (0.0, float("inf"))},
    step_size="alpha",
)
def neftune_style(
    parents: Sequence[Adapter], generator: torch.Generator, *, alpha: float = 10.0
) -> Adapter:
    """Adds uniform noise of +-alpha/sqrt(numel) to A only, in every layer.

    dW changes by B N: within rank r and within the outputs that B reaches.
    """
    factors = []
    for name, pair in parents[0].factors.items():
        _check_finite(name, pair.A.sum(dtype=torch.float32))
        bound = alpha / math.sqrt(pair.A.numel())
        noise = torch.empty(pair.A.shape, device=generator.device)
        noise.uniform_(-bound, bound, generator=generator)
        A = noise.to(pair.A.device).add_(pair.A).to(pair.A.dtype)
        factors.append(Factors(A, pair.B.clone()))
    return adapter_like(parents[0], factors)


def _noisy(parent: Adapter, chosen: set[str], eps: float, generator: torch.Generator) -> Adapter:
    factors = []
    for name, pair in parent.factors.items():
        if name in chosen:
            A, B = (_with_noise(name, factor, eps, generator) for factor in (pair.A, pair.B))
        else:
            A, B = pair.A.clone(), pair.B.clone()
        factors.append(Factors(A, B))
    return adapter_like(parent, factors)


def _with_noise(name: str, factor: Tensor, eps: float, generator: torch.Generator) -> Tensor:
    values = factor.float().reshape(-1)
    # torch.std takes ten times as long as these two.
    variance = values.dot(values) / values.numel() - values.mean().square()
    _check_finite(name, variance)
    noise = torch.empty(factor.shape, device=generator.device)
    noise.normal_(std=eps * float(variance.clamp_min(0)) ** 0.5, generator=generator)
    return noise.to(factor.device).add_(factor).to(factor.dtype)


def _normal(shape: Sequence[int], generator: torch.Generator, like: Tensor) -> Tensor:
    """Standard normals drawn where the generator lives, moved to where `like` does."""
    drawn = torch.randn(tuple(shape), generator=generator, device=generator.device)
    return drawn.to(like.device, like.dtype)


def _skew(matrix: Tensor) -> Tensor:
    return (matrix - matrix.mT) / 2


def _check_finite(name: str, value: Tensor) -> None:
    if not torch.isfinite(value):
        raise UserError(f"a parent holds a value that is not finite (NaN or Inf) in {name}")
