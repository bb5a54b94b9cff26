"""The weight-space operators; importing this registers them."""

from azr_population.weights.operators import crossovers, mutations

__all__ = ["crossovers", "mutations"]
