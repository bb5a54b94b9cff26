"""The space of code problems."""

from pathlib import Path

from azr_population.domains.code.descriptors import DESCRIPTORS, KINDS, point, words
from azr_population.domains.code.samples import samples
from azr_population.domains.space import Space

SPACE = Space(
    DESCRIPTORS,
    point,
    words,
    samples,
    Path(__file__).with_name("centroids.npy"),
    panels=tuple(f"gives {kind}" for kind in KINDS),
    axes=("size", "branching"),
    labels=("AST nodes", "branching"),
    ends=("8", "128"),
)
"""The archive's first two principal components only tell the kinds of output apart, so these have
panels of their own."""
