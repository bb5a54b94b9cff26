"""The same update at another rank or alpha."""

import math

import torch

from azr_population.weights.adapter import Adapter, Factors, LoraSpec
from azr_population.weights.lowrank import Layer, Term, combine, decompose


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
            spectrum.scaled_left[:, :, :rank] * 3**0.5,
            spectrum.right[:, :rank] / 3**0.5,
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
