"""The weight-space operators: mutations of one parent, crossovers of two, the better one first.

Names and operations are PopuLoRA's (arXiv 2605.16727); where the paper gives no value, the defaults
are those of the independent package populora 0.4.5. Combining parents means combining B1 A1 and
B2 A2, never A and B separately: (B1 + B2)(A1 + A2) would add the cross terms B1 A2 and B2 A1, which
no parent learned. A sum of two updates has rank 2 r and is truncated to the best rank r.

B A = (B G)(G^-1 A) for every invertible G, so an operator that makes new factors has to choose one.
Ours resemble a fresh LoRA: the rows of A are orthogonal with the norm of PEFT's initialisation
(1/sqrt 3), and B has the singular values. A child then trains like any other member. A component
that an operator sets to zero is zero in B only, so it can be learned again; a symmetric split
(sqrt(S) on both sides) would leave it at a saddle point without gradient.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.lowrank import decompose_all
from azr_population.weights.operator import operator

NEGLIGIBLE = 1e-6
"""Singular values below this share of the largest are rounding errors; their vectors are
arbitrary."""


@operator("svd_structured", code="M1", parents=1, ranges={"eps": (0.0, 1.0)})
def svd_structured(
    parents: Sequence[Adapter], generator: torch.Generator, *, eps: float = 0.1
) -> Adapter:
    """Rescales the singular values of dW at random and turns its singular bases a little.

    dW = U S V^T becomes U (I + eps K) S exp(eps z) (I + eps L)^T V^T with z ~ N(0, 1) and K, L the
    skew parts (M - M^T)/2 of N(0, 1) matrices. Exact, of rank <= r; depends on dW only. Zero
    components are not rotated, because their vectors are arbitrary.
    """
    pairs, r = list(parents[0].factors.values()), parents[0].spec.rank
    growths = _normal((len(pairs), r), generator)
    turns = [_normal((len(pairs), r, r), generator) for _ in range(2)]
    factors = []
    spectra = decompose_all((pair.B, pair.A) for pair in pairs)
    for parent, pair, growth, *turned in zip(spectra, pairs, growths, *turns, strict=True):
        active = NEGLIGIBLE * parent.S[0] < parent.S
        K, L = (eps * _skew(turn) * active * active[:, None] for turn in turned)
        left = (parent.U + parent.U @ K) * parent.S * torch.exp(eps * growth)
        factors.append(parent.child(left, parent.V + L.mT @ parent.V, pair.A.dtype))
    return _adapter_like(parents[0], factors)


@operator(
    "layer_selective_gaussian",
    code="M2",
    parents=1,
    ranges={"eps": (0.0, 10.0), "fraction": (0.0, 1.0)},
)
def layer_selective_gaussian(
    parents: Sequence[Adapter],
    generator: torch.Generator,
    *,
    eps: float = 0.1,
    fraction: float = 0.33,
) -> Adapter:
    """Adds Gaussian noise to the factors of a random share of the layers.

    At least one layer. Each factor's noise has eps times the factor's standard deviation. Noise on
    dW would have full rank; noise on the factors stays within rank r. Relative to dW it is about
    sqrt(2) eps, and a zero factor stays zero.
    """
    names = list(parents[0].factors)
    count = max(1, int(fraction * len(names)))
    order = torch.randperm(len(names), generator=generator, device=generator.device).tolist()
    return _noisy(parents[0], {names[i] for i in order[:count]}, eps, generator)


@operator("component_masking", code="M3", parents=1, ranges={"rho": (0.0, 1.0)})
def component_masking(
    parents: Sequence[Adapter], generator: torch.Generator, *, rho: float = 0.3
) -> Adapter:
    """Sets a random ceil(rho r) of the r singular components of dW to zero, in every layer.

    Exact, of rank r - ceil(rho r); dW depends on the parent's dW only. The rows of A stay, so
    dropped components can be learned again.
    """
    pairs, r = list(parents[0].factors.values()), parents[0].spec.rank
    scores = torch.rand(len(pairs), r, generator=generator, device=generator.device)
    keep = torch.ones_like(scores).scatter_(1, scores.argsort(dim=1)[:, : math.ceil(rho * r)], 0.0)
    factors = []
    spectra = decompose_all((pair.B, pair.A) for pair in pairs)
    for parent, pair, mask in zip(spectra, pairs, keep.cpu(), strict=True):
        factors.append(parent.child(parent.U * parent.S * mask, parent.V, pair.A.dtype))
    return _adapter_like(parents[0], factors)


@operator("full_gaussian", code="M4", parents=1, ranges={"eps": (0.0, 10.0)})
def full_gaussian(
    parents: Sequence[Adapter], generator: torch.Generator, *, eps: float = 0.15
) -> Adapter:
    """Adds Gaussian noise to the factors of every layer.

    As `layer_selective_gaussian` with all layers.
    """
    return _noisy(parents[0], set(parents[0].factors), eps, generator)


def _noisy(parent: Adapter, chosen: set[str], eps: float, generator: torch.Generator) -> Adapter:
    factors = []
    generator = _beside(generator, next(iter(parent.factors.values())).A.device)
    for name, pair in parent.factors.items():
        if name in chosen:
            A, B = (_with_noise(factor, eps, generator) for factor in (pair.A, pair.B))
        else:
            A, B = pair.A.clone(), pair.B.clone()
        factors.append(Factors(A, B))
    return _adapter_like(parent, factors)


def _with_noise(factor: Tensor, eps: float, generator: torch.Generator) -> Tensor:
    values = factor.float().reshape(-1)
    # torch.std takes ten times as long as these two.
    variance = values.dot(values) / values.numel() - values.mean().square()
    noise = torch.empty(factor.shape, device=factor.device).normal_(generator=generator)
    # A number on the CPU would be waited for.
    return noise.mul_(eps * variance.clamp_min(0).sqrt()).add_(factor).to(factor.dtype)


def _beside(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator on the device, seeded by the given one; the same one if it is there already.
    Millions of numbers are faster drawn than copied to a GPU."""
    if generator.device.type == device.type:
        return generator
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    # Torch's meta device has no generators, and draws without contents.
    return torch.Generator("cpu" if device.type == "meta" else device).manual_seed(seed)


def _normal(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Standard normals drawn on the generator's device, moved to the CPU."""
    return torch.randn(tuple(shape), generator=generator, device=generator.device).cpu().double()


def _skew(matrix: Tensor) -> Tensor:
    return (matrix - matrix.mT) / 2


@operator("dare", code="X1", parents=2, ranges={"p": (0.0, 0.99)})
def dare(parents: Sequence[Adapter], generator: torch.Generator, *, p: float = 0.7) -> Adapter:
    """Drops each parent's update at random, rescales what is left, and averages the two.

    Yu et al. 2024, "Language Models are Super Mario" (arXiv 2311.03099).
    DARE drops single entries of dW, which gives full rank. Here whole columns of dW (one input
    each) are dropped with probability p and the others are multiplied by 1/(1-p). Every entry of dW
    has the same distribution as in DARE, so the mean, the variance and the noise on each output for
    a given input are equal; but entries of one column are dropped together. This is exact, as a
    product on A's side; the mean of both parents, of rank 2r, is truncated to the best rank r.
    """

    def sums() -> Iterator[tuple[Tensor, Tensor]]:
        """The mean of both updates by layer, as B and A of rank 2r."""
        for pairs in _layers(parents):
            inputs = []
            for pair in pairs:
                draws = torch.rand(pair.A.shape[1], generator=generator, device=generator.device)
                columns = (draws >= p).to(pair.A.device, torch.float64, non_blocking=True) / (1 - p)
                inputs.append(pair.A * columns)
            yield torch.cat([0.5 * pair.B.double() for pair in pairs], dim=1), torch.cat(inputs)

    return _best(parents[0], sums())


@operator("layer_wise", code="X2", parents=2)
def layer_wise(parents: Sequence[Adapter], generator: torch.Generator) -> Adapter:
    """Takes each layer as a whole from one of the parents, with equal probability. Exact."""
    names = list(parents[0].factors)
    choices = torch.randint(2, (len(names),), generator=generator, device=generator.device)
    factors = []
    for name, choice in zip(names, choices.tolist(), strict=True):
        pair = parents[choice].factors[name]
        factors.append(Factors(pair.A.clone(), pair.B.clone()))
    return _adapter_like(parents[0], factors)


@operator("svd_subspace", code="X3", parents=2, ranges={"k": (1, float("inf"))})
def svd_subspace(
    parents: Sequence[Adapter], generator: torch.Generator, *, k: int | None = None
) -> Adapter:
    """Takes the first k singular components of dW from one parent, the rest from the other.

    k is uniform in 1..r-1 unless given, the same in all layers. Exact: the sum has rank r. Depends
    on the parents' dW only.
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
    factors, layers = [], _layers(parents)
    spectra = decompose_all((pair.B, pair.A) for pairs in layers for pair in pairs)
    for better, worse in zip(spectra, spectra, strict=True):
        parts = [
            parent.child((parent.U * parent.S)[:, taken], parent.V[taken], layers[0][0].A.dtype)
            for parent, taken in ((better, slice(k)), (worse, slice(k, None)))
        ]
        A, B = torch.cat([part.A for part in parts]), torch.cat([part.B for part in parts], dim=1)
        factors.append(Factors(A, B))
    return _adapter_like(parents[0], factors)


@operator(
    "extrapolative", code="X4", parents=2, ranges={"eta_min": (0.0, 10.0), "eta_max": (0.0, 10.0)}
)
def extrapolative(
    parents: Sequence[Adapter],
    generator: torch.Generator,
    *,
    eta_min: float = 1.0,
    eta_max: float = 1.5,
) -> Adapter:
    """Goes from the weaker parent through the better one and beyond: w + eta (b - w).

    The better parent is the first; eta is uniform in eta_min..eta_max, the same in all layers. It
    acts on dW, so there are no cross terms; the sum, of rank 2r, is truncated to the best rank r.
    """
    if eta_min > eta_max:
        raise UserError(f"extrapolative: eta_min={eta_min:g} is above eta_max={eta_max:g}")
    share = float(torch.rand((), generator=generator, device=generator.device))
    eta = eta_min + (eta_max - eta_min) * share
    return weighted_sum(parents, (eta, 1 - eta))


def weighted_sum(parents: Sequence[Adapter], weights: Sequence[float]) -> Adapter:
    """The sum of the parents' dW by their weights, truncated to the first one's rank."""
    layers = (
        (
            torch.cat([w * p.B.double() for w, p in zip(weights, pairs, strict=True)], dim=1),
            torch.cat([pair.A for pair in pairs]),
        )
        for pairs in _layers(parents)
    )
    return _best(parents[0], layers)


def _best(parent: Adapter, layers: Iterable[tuple[Tensor, Tensor]]) -> Adapter:
    """The best approximation of each layer's B [out, k] @ A [k, in] of the parent's rank."""
    dtype = next(iter(parent.factors.values())).A.dtype
    spectra = decompose_all(layers)
    return _adapter_like(parent, [layer.best(parent.spec.rank, dtype) for layer in spectra])


def _layers(parents: Sequence[Adapter]) -> list[list[Factors]]:
    """The parents' factors, layer by layer in the first one's order."""
    return [[parent.factors[name] for parent in parents] for name in parents[0].factors]


def _adapter_like(parent: Adapter, factors: Sequence[Factors]) -> Adapter:
    """An adapter with the parent's spec and layers and new factors, given in the same order."""
    return Adapter(parent.spec, dict(zip(parent.factors, factors, strict=True)))
