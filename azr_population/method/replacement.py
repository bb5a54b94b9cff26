"""Replacement: which members are replaced, and by children of which parents (population based
training, PBT).

Fitness compares members of one sub-population only, because ratings mean nothing across roles.
Source: PopuLoRA's replacement step (the worst members are replaced by children of better ones);
Jaderberg et al. 2017 for PBT. Shares, elites and the child's rating are ours.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from azr_population.config.schema import EvolutionConfig
from azr_population.method.members import Member, Rating


def conservative_rating(member: Member, rewards: Sequence[float]) -> float:
    """The lower bound of the member's skill, mu - 3 sigma, in TrueSkill points (Herbrich et al.
    2006, section 4)."""
    return member.rating.conservative


def mean_reward(member: Member, rewards: Sequence[float]) -> float:
    """The mean reward of the interval (PBT's moving average of the objective, Jaderberg et al.
    2017); it depends on the opponents that the member happened to meet."""
    return math.fsum(rewards) / len(rewards) if rewards else -math.inf


FITNESS: dict[str, Callable[[Member, Sequence[float]], float]] = {
    "conservative_rating": conservative_rating,
    "mean_reward": mean_reward,
}
"""Functions of a member and its mean reward per step since the last replacement or its birth,
whichever is later. Higher is fitter; -inf: unknown."""
CHILD_SIGMA_INCREASE = 25.0 / 6.0
"""Increase of a child's sigma over its parents', in TrueSkill points; variances add."""


Fitness = NDArray[np.float64]
ELITES = 1
"""Number of the best members of each sub-population that are never replaced."""
TOP = 0.5
"""The share of the survivors that parents are drawn from."""


def ranked(fitness: Fitness) -> list[int]:
    """Indices from fittest to least fit; NaN counts as least, ties go to the lower index."""
    values = np.where(np.isnan(fitness), -np.inf, fitness)
    return [int(i) for i in np.argsort(-values, kind="stable")]


def truncation(fitness: Fitness, count: int, generator: np.random.Generator) -> list[int]:
    """`count` distinct indices, the fittest first, drawn from the better half of the candidates (at
    least `count` of them), equally likely: PBT's exploit by truncation (Jaderberg et al. 2017,
    section 4.1.1)."""
    best = ranked(fitness)[: max(count, math.ceil(TOP * len(fitness)))]
    return [best[i] for i in sorted(generator.permutation(len(best))[:count])]


@dataclass(frozen=True)
class Replacement:
    """One replacement. Nothing has been changed yet.

    `parents` are two distinct survivors (one if only one survives), the fitter first. An operator
    of one parent takes the first. The fitness values are those that decided.
    """

    victim: Member
    parents: tuple[Member, ...]
    victim_fitness: float
    parent_fitness: tuple[float, ...]


def number_replaced(config: EvolutionConfig, size: int) -> int:
    """The number of `size` members replaced at a time if enough are neither elites nor protected
    newborns: `replace_fraction` of them, halves rounded up, at least one."""
    fraction = config.replace_fraction
    return max(1, math.floor(fraction * size + 0.5)) if fraction > 0 else 0


def choose(
    config: EvolutionConfig,
    members: Sequence[Member],
    values: Sequence[float],
    generator: np.random.Generator,
    step: int = 0,
) -> list[Replacement]:
    """Chooses the replacements of one sub-population; a pure function of its arguments.

    Args:
        members: all members of one role.
        values: each member's fitness.
        generator: the only source of chance.
        step: the current step, for the grace period of newborns.

    Returns:
        At most `len(members) - ELITES` replacements, the first victim first; fewer if the others
        are protected. Every parent survives the step, so replacements can be carried out in any
        order.
    """
    fitness = np.array(values)
    protected = set(ranked(fitness)[:ELITES])
    # Founders are not protected: they have been rated since the first step.
    protected |= {
        index
        for index, member in enumerate(members)
        if member.generation and step - member.born < config.grace_period
    }
    worst_first = ranked(fitness)[::-1]
    victims = [i for i in worst_first if i not in protected]
    victims = victims[: number_replaced(config, len(members))]
    survivors = [i for i in range(len(members)) if i not in victims]
    replacements = []
    for victim in victims:
        chosen = truncation(fitness[survivors], min(2, len(survivors)), generator)
        parents = [survivors[i] for i in chosen]
        replacements.append(
            Replacement(
                victim=members[victim],
                parents=tuple(members[i] for i in parents),
                victim_fitness=float(fitness[victim]),
                parent_fitness=tuple(float(fitness[i]) for i in parents),
            )
        )
    return replacements


def inherited_rating(parents: Sequence[Rating]) -> Rating:
    """A child's rating before its first match.

    mu is the mean of the parents' mu. The variance is the mean of the parents' variances plus
    `CHILD_SIGMA_INCREASE` squared, because the operator's effect on skill is unknown. sigma is at
    most a beginner's.
    """
    mu = math.fsum(rating.mu for rating in parents) / len(parents)
    variance = math.fsum(rating.sigma**2 for rating in parents) / len(parents)
    sigma = math.sqrt(variance + CHILD_SIGMA_INCREASE**2)
    return Rating(mu, min(Rating.sigma, sigma))
