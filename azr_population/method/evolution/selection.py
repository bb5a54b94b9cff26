"""Parent selection: which of the surviving members beget a child.

Every strategy takes the candidates' fitness (float64 [n], higher is fitter, -inf for unknown), how
many distinct parents are wanted (1 <= count <= n) and a generator, and returns `count` distinct
indices in the order drawn.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from azr_population.errors import UserError
from azr_population.registry import Registry

Fitness = NDArray[np.float64]
SELECTION: Registry[Callable[..., list[int]]] = Registry("evolution.selection")


def ranked(fitness: Fitness) -> list[int]:
    """Indices from fittest to least fit; NaN counts as least, ties go to the lower index."""
    known = np.where(np.isnan(fitness), -np.inf, fitness)
    return [int(i) for i in np.argsort(-known, kind="stable")]


@SELECTION.register("truncation", "PBT exploit by truncation, Jaderberg et al. 2017, section 4.1.1")
def truncation(
    fitness: Fitness, count: int, generator: np.random.Generator, top: float = 0.5
) -> list[int]:
    """Any of the best `top` share of the candidates (at least `count` of them), equally likely."""
    if not 0.0 < top <= 1.0:
        raise UserError(
            f"evolution.selection_options.top={top} must be above 0 and at most 1",
            key="evolution.selection_options.top",
        )
    best = ranked(fitness)[: max(count, math.ceil(top * len(fitness)))]
    return [best[i] for i in generator.permutation(len(best))[:count]]


@SELECTION.register("tournament", "Goldberg and Deb 1991")
def tournament(
    fitness: Fitness, count: int, generator: np.random.Generator, size: int = 2
) -> list[int]:
    """For each parent, the fittest of `size` candidates drawn from those not yet chosen."""
    if size < 1:
        raise UserError(
            f"evolution.selection_options.size={size} must be at least 1",
            key="evolution.selection_options.size",
        )
    place = {index: rank for rank, index in enumerate(ranked(fitness))}
    left = list(range(len(fitness)))
    chosen: list[int] = []
    for _ in range(count):
        entrants = generator.permutation(len(left))[:size]
        winner = min((left[i] for i in entrants), key=place.__getitem__)
        left.remove(winner)
        chosen.append(winner)
    return chosen


@SELECTION.register("fitness_proportional", "roulette wheel with windowing, Goldberg 1989")
def fitness_proportional(
    fitness: Fitness, count: int, generator: np.random.Generator, base: float = 0.1
) -> list[int]:
    """Chance proportional to the fitness above the worst candidate's.

    Fitness may be negative, so the worst is moved to `base` times the range, which leaves it a
    chance: the best is (1 + base) / base = 11 times as likely as the worst at the default.
    """
    if not base > 0.0:
        raise UserError(
            f"evolution.selection_options.base={base} must be above 0",
            key="evolution.selection_options.base",
        )
    known = np.isfinite(fitness)
    if not known.any():
        return random(fitness, count, generator)
    # What nobody measured competes as the worst.
    values = np.where(known, fitness, fitness[known].min())
    spread = values.max() - values.min()
    wheel = values - values.min() + base * spread if spread > 0 else np.ones(len(values))
    return [int(i) for i in generator.choice(len(values), count, False, wheel / wheel.sum())]


BLIND = frozenset({"random"})
"""Selections that know no fitness: whichever parent comes first is chance as well."""


@SELECTION.register("random", "the ablation of parent selection")
def random(fitness: Fitness, count: int, generator: np.random.Generator) -> list[int]:
    """Any candidate, equally likely; only replacement presses towards the fit."""
    return [int(i) for i in generator.permutation(len(fitness))[:count]]
