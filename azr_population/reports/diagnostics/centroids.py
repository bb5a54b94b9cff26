"""Makes `centroids.npy`, the cells of the coverage archive:

    python -m azr_population.reports.diagnostics.centroids

The samples that are clustered spread evenly over what is possible, not over what some model writes:
sizes and depths uniformly within their bounds, every mix of operations alike (a flat Dirichlet),
one to three arguments and an output of every kind alike.
"""

from __future__ import annotations

import numpy as np

from azr_population.reports.diagnostics.coverage import CENTROIDS
from azr_population.reports.diagnostics.descriptors import DESCRIPTORS, KINDS, scale

CELLS = 1000
SAMPLES = 50_000
SEED = 9


def samples(seed: int, n: int) -> np.ndarray:
    """`n` possible problems in descriptor values, float64[n, d]."""
    generator = np.random.default_rng(seed)
    low, high = (np.array([d[i] for d in DESCRIPTORS]) for i in (1, 2))
    size, depth, branching = generator.uniform(low[:3], high[:3], (n, 3)).T
    mix = generator.dirichlet(np.ones(5), n)
    arguments = generator.integers(1, 4, n)
    drawn = generator.integers(0, len(KINDS), (n, 3))
    present = np.arange(3) < arguments[:, None]
    taken = np.stack(
        [np.sum((drawn == kind) & present, axis=1) / arguments for kind in range(len(KINDS))], 1
    )
    given = np.eye(len(KINDS))[generator.integers(0, len(KINDS), n)]
    return np.column_stack([size, depth, branching, mix, arguments, taken, given])


def centroids(seed: int, cells: int = CELLS, n: int = SAMPLES) -> np.ndarray:
    """The centroids of the cells in the archive's coordinates, float32[cells, d]."""
    from ribs.archives import k_means_centroids

    ranges = [(0.0, descriptor.weight) for descriptor in DESCRIPTORS]
    found, _ = k_means_centroids(
        centroids=cells, ranges=ranges, samples=scale(samples(seed, n)), seed=seed
    )
    ordered: np.ndarray = found[np.lexsort(found.T[::-1])].astype(np.float32)
    return ordered


if __name__ == "__main__":
    np.save(CENTROIDS, centroids(SEED))
