"""A domain's space of problems, in whose cells coverage is counted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Descriptor(NamedTuple):
    """An axis: its name, its bounds (values outside are clipped) and its weight, which is the
    distance between the two bounds."""

    name: str
    low: float
    high: float
    weight: float


@dataclass(frozen=True)
class Space:
    """The space of problems, in whose cells coverage is counted (paper, Fig 9).

    A CVT archive: Vassiliades, Chatzilygeroudis, Mouret, "Using centroidal Voronoi tessellations to
    scale up MAP-Elites" (2018). Bounds, weights and cells are fixed, so that a cell means the same
    in every run. The cells belong to the centroids in a file: k-means of 50,000 possible problems,
    whose descriptors cover what is possible and not what some model writes.
    """

    descriptors: Sequence[Descriptor]
    centroids: Path
    """The `.npy` file of the cells' centroids, in the archive's coordinates, float[cells, d]."""
    point: Callable[[Mapping[str, Any]], Sequence[float] | None]
    """The descriptor values of a record of `tasks.jsonl`; None where it has none."""

    def scale(self, points: np.ndarray) -> np.ndarray:
        """Descriptor values [n, d] as coordinates of the archive: clipped and weighted."""
        low, high, weight = np.array([each[1:] for each in self.descriptors], dtype=np.float64).T
        scaled: np.ndarray = (np.clip(points, low, high) - low) / (high - low) * weight
        return scaled

    @cached_property
    def archive(self) -> np.ndarray:
        """The centroids in the archive's coordinates, float64[cells, d]."""
        return np.asarray(np.load(self.centroids), dtype=np.float64)

    def place(self, points: np.ndarray) -> np.ndarray:
        """The nearest centroid of each point [n, d], int64[n]; n is not 0."""
        from scipy.spatial import KDTree  # late: the terminal's lines need none of this

        return np.asarray(KDTree(self.archive).query(self.scale(points))[1], dtype=np.int64)
