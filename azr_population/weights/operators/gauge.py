"""How a child's dW is split into factors, and how adapters become layers and layers adapters.

B A = (B G)(G^-1 A) for every invertible G: an operator that makes new factors has to choose one.
Ours are those of a fresh LoRA: the rows of A orthogonal and as long as PEFT initialises them
(1/sqrt 3), the singular values all in B. A child then trains like any other member, and a component
that an operator has set to zero is only zero in B, so that it can be learned anew (a symmetric
split, sqrt(S) on both sides, would leave it at a saddle without gradient).
"""

from collections.abc import Sequence

from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.lowrank import Layer, Term

ROW_NORM = 3**-0.5
"""Length of the rows of a child's A: that of U(-1/sqrt(in), 1/sqrt(in)), PEFT's start."""


def layers_of(adapter: Adapter) -> list[Layer]:
    """Every layer's update as one term, in the adapter's order."""
    return [Layer(name, (Term(pair),)) for name, pair in adapter.factors.items()]


def adapter_like(parent: Adapter, factors: Sequence[Factors]) -> Adapter:
    """An adapter with the parent's spec and layers and new factors, given in the same order."""
    return Adapter(parent.spec, dict(zip(parent.factors, factors, strict=True)))
