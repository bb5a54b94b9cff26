"""Evolution in a run, the same in both hosts (population based training, PBT): which members are
replaced and when, by children of which parents, and what a child inherits.

Fitness compares members of one sub-population only, because ratings mean nothing across roles.
Source: PopuLoRA's replacement step (the worst members are replaced by children of better ones);
Jaderberg et al. 2017 for PBT. Shares, elites and the child's rating are ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from azr_population.config.schema import EvolutionConfig
from azr_population.method.members import Member, Rating, Roster
from azr_population.streams import Streams
from azr_population.weights.breeding import Breeding, breed, get_operator

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
    """The number of `size` members replaced at a time if enough are not protected newborns:
    `replace_fraction` of them, halves rounded up, at least one, and never the elite."""
    fraction = config.replace_fraction
    wanted = max(1, math.floor(fraction * size + 0.5)) if fraction > 0 else 0
    return min(wanted, size - ELITES)


def choose(
    config: EvolutionConfig,
    members: Sequence[Member],
    generator: np.random.Generator,
    step: int = 0,
) -> list[Replacement]:
    """Chooses the replacements of one sub-population; a pure function of its arguments. Fitness is
    the lower bound of a member's skill, mu - 3 sigma (Herbrich et al. 2006, section 4).

    Args:
        members: all members of one role.
        generator: the only source of chance.
        step: the current step, for the grace period of newborns.

    Returns:
        At most `len(members) - ELITES` replacements, the first victim first; fewer if the others
        are protected. Every parent survives the step, so replacements can be carried out in any
        order.
    """
    fitness = np.array([member.rating.conservative for member in members])
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


MakeChild = Callable[[Replacement, EvolutionConfig, int], Breeding]
"""(replacement, its operators and options, seed): puts a child in the victim's slot."""


def make_child(
    engine: Any, replacement: Replacement, config: EvolutionConfig, seed: int
) -> Breeding:
    """A `MakeChild` of an engine's members, by its `read` and `write`."""
    parents = [engine.read(parent.slot) for parent in replacement.parents]
    generator = torch.Generator().manual_seed(seed)
    child, breeding = breed(config.operators, parents, generator, config.options)
    engine.write(replacement.victim.slot, child)
    return breeding


class Evolution:
    """Replaces members of a run. `config` is the run's `evolution` group."""

    def __init__(self, config: EvolutionConfig, streams: Streams) -> None:
        self.config = config
        self._streams = streams

    def replace(self, step: int, roster: Roster, make: MakeChild) -> list[dict[str, Any]]:
        """Replaces the worst members if the interval is over; returns lines of `lineage.jsonl`."""
        if not self.config.interval or step % self.config.interval:
            return []
        replacements = []
        for role, members in roster.sub_populations.items():
            if len(members) < 2:
                continue
            generator = self._streams.numpy(f"select {role}", step)
            replacements += choose(self.config, members, generator, step)
        births = [self._replace(step, each, make) for each in replacements]
        moved = roster.recenter_ratings() if births else 0.0
        return [birth | {"mu": birth["mu"] + moved} for birth in births]

    def check_rates(self, member: Member) -> None:
        """Raises ValueError: a hyperparameter of the member is not one that evolves, or out of its
        bounds."""
        for name, value in member.hyperparameters.items():
            if name not in self.config.hyperparameters:
                raise ValueError(f"{member.name} has a {name}, which does not evolve")
            low, high = self.config.hyperparameters[name].limits
            if not low <= value <= high:
                raise ValueError(
                    f"{member.name} has {name}={value:g}, outside of {low:g} to {high:g}"
                )

    def _replace(self, step: int, chosen: Replacement, make: MakeChild) -> dict[str, Any]:
        """Turns the victim into the child that `make` puts in its slot; returns its line of
        `lineage.jsonl`. The child inherits only from parents that the operator used."""
        child = chosen.victim
        seed = self._streams.integer(f"breed {child.name}", step)
        first = chosen.parents[0]
        breeding = make(chosen, self.config, seed)
        parents = chosen.parents[: get_operator(breeding.operator).parents]
        ratings = [parent.rating for parent in parents]
        child.rating = inherited_rating(ratings)
        child.generation += 1
        child.born = step
        child.hyperparameters = {
            name: self._inherited(child, name, first.hyperparameters[name], step)
            for name in child.hyperparameters
        }
        evolved = {"hyperparameters": dict(child.hyperparameters)} if child.hyperparameters else {}
        return {
            "step": step,
            "child": child.name,
            "generation": child.generation,
            "parents": [parent.name for parent in parents],
            "operator": breeding.operator,
            "options": breeding.options,
            **evolved,
            "seed": seed,
            "fitness": {
                "victim": chosen.victim_fitness,
                "parents": list(chosen.parent_fitness[: len(parents)]),
            },
            "mu": child.rating.mu,
            "sigma": child.rating.sigma,
        }

    def draw_hyperparameters(self, founder: Member) -> None:
        """Draws the founder's values of the hyperparameters that evolve."""
        for name, config in self.config.hyperparameters.items():
            if founder.role.value in config.roles:
                generator = self._streams.numpy(f"{name} {founder.name}")
                founder.hyperparameters[name] = log_uniform(config.init, generator)

    def _inherited(self, child: Member, name: str, value: float, step: int) -> float:
        """A child's hyperparameter; `value` is its first parent's."""
        config = self.config.hyperparameters[name]  # type: ignore[index]
        if not config.inherit:
            return child.hyperparameters[name]
        generator = self._streams.numpy(f"{name} {child.name}", step)
        if generator.random() < config.resample:
            return log_uniform(config.init, generator)
        low, high = config.limits
        return min(
            max(low, value * config.perturb[int(generator.integers(len(config.perturb)))]), high
        )


def log_uniform(bounds: Sequence[float], generator: np.random.Generator) -> float:
    """A log-uniform number between two positive bounds."""
    low, high = map(math.log, bounds)
    return math.exp(generator.uniform(low, high))
