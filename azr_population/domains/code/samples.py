"""Possible code problems, from which the cells of the coverage archive are made.

They cover what is possible, not what some model writes. The logarithm of the size is uniform; depth
and branching are uniform up to what a program of that size has room for; one to five kinds of
operations occur, in any proportion; one to three arguments and the kinds of values are equally
likely.

With 1000 cells, 150 steps of the nano single agent (135 and 142 cells) fill about a third of what
20,000 programs of the nano grammar fill (444). The other cells are for larger models.
"""

import numpy as np

from azr_population.domains.code.descriptors import DESCRIPTORS, KINDS


def samples(seed: int, n: int) -> np.ndarray:
    """`n` possible problems in descriptor values, float64[n, d]."""
    generator = np.random.default_rng(seed)
    bounds = {d.name: d for d in DESCRIPTORS}
    size = generator.uniform(bounds["size"].low, bounds["size"].high, n)
    room = (size - bounds["size"].low) / (bounds["size"].high - bounds["size"].low)
    depth, branching = (
        generator.uniform(0.0, room) * (bounds[name].high - bounds[name].low) + bounds[name].low
        for name in ("depth", "branching")
    )
    # The order of random numbers chooses which operations occur; equal gammas make any proportion.
    occur = generator.random((n, 5)).argsort(axis=1) < generator.integers(1, 6, (n, 1))
    mix = generator.standard_gamma(1.0, (n, 5)) * occur
    mix /= mix.sum(axis=1, keepdims=True)
    arguments = generator.integers(1, 4, n)
    drawn = generator.integers(0, len(KINDS), (n, 3))
    present = np.arange(3) < arguments[:, None]
    taken = np.stack(
        [np.sum((drawn == kind) & present, axis=1) / arguments for kind in range(len(KINDS))], 1
    )
    given = np.eye(len(KINDS))[generator.integers(0, len(KINDS), n)]
    return np.column_stack([size, depth, branching, mix, arguments, taken, given])
