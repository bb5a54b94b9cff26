"""Replacement: who makes room for the children of whom (population based training, PBT).

Source: PopuLoRA's replacement step (the worst members are replaced by children of better ones);
Jaderberg et al. 2017 for PBT. Shares, elites and the child's rating are ours.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from azr_population.config.schema import EvolutionConfig
from azr_population.method.evolution.fitness import FITNESS
from azr_population.method.evolution.selection import BLIND, SELECTION, Fitness, ranked
from azr_population.method.members.member import Member, Rating
from azr_population.registry import Registry

REPLACEMENT: Registry[Callable[[Fitness, Sequence[int]], list[int]]] = Registry(
    "evolution.replacement"
)
"""Orders of dismissal: from fitness (float64 [n]) and step of birth ([n]), all indices, the first
to be replaced in front. Elites are taken out afterwards."""


@REPLACEMENT.register("worst", "replace worst, Whitley 1989 (GENITOR); PopuLoRA, abstract")
def worst(fitness: Fitness, born: Sequence[int]) -> list[int]:
    """The least fit go first."""
    return ranked(fitness)[::-1]


@REPLACEMENT.register("oldest", "regularized (aging) evolution, Real et al. 2019")
def oldest(fitness: Fitness, born: Sequence[int]) -> list[int]:
    """Who has lived longest goes first; among equally old ones the least fit."""
    return sorted(worst(fitness, born), key=lambda index: born[index])


@dataclass(frozen=True)
class Replacement:
    """One planned replacement. Nothing has been changed yet.

    `parents` are two distinct survivors, the fitter first (one where only one survives), or in the
    order drawn where the selection is blind to fitness; an operator of one parent takes the first.
    The fitness values are those that decided; the child's rating depends on the parents really
    used: `PopulationBasedTraining.inherited_rating`.
    """

    victim: Member
    parents: tuple[Member, ...]
    victim_fitness: float
    parent_fitness: tuple[float, ...]


class PopulationBasedTraining:
    """The replacement step that the `evolution` group of a run describes. Raises UserError: an
    unknown name (the message lists the valid ones), option or value."""

    def __init__(self, settings: EvolutionConfig) -> None:
        FITNESS.find(settings.fitness)
        REPLACEMENT.find(settings.replacement)
        options = settings.selection_options
        SELECTION.find(settings.selection).refuse_unknown("evolution.selection_options", options)
        self.settings = settings
        self._select(np.zeros(2), 1, np.random.default_rng(0))

    def replaced(self, size: int) -> int:
        """How many members of a sub-population of `size` are replaced at a time, where as many are
        neither elites nor too young: `fraction` of them, halves rounded up, at least one."""
        fraction = self.settings.replace_fraction
        return max(1, math.floor(fraction * size + 0.5)) if fraction > 0 else 0

    def fitness_of(
        self, members: Sequence[Member], rewards: Mapping[str, Sequence[float]]
    ) -> list[float]:
        """Every member's fitness; arguments as those of `plan`."""
        score = FITNESS.find(self.settings.fitness).function
        return [score(member, rewards.get(member.name, ())) for member in members]

    def plan(
        self,
        members: Sequence[Member],
        rewards: Mapping[str, Sequence[float]],
        generator: np.random.Generator,
        step: int = 0,
    ) -> list[Replacement]:
        """Plans the replacements of one sub-population; a pure function of its arguments.

        Args:
            members: all members of one role.
            rewards: each member's mean rewards since the last replacement, by name.
            generator: the only source of chance.
            step: now; who is not `ready` yet goes by it.

        Returns:
            At most `len(members) - elites` replacements, the first victim first; fewer when the
            others are too young. Every parent
            survives the step, so plans can be carried out in any order.
        """
        fitness = np.array(self.fitness_of(members, rewards))
        victims = self._victims(fitness, members, step)
        survivors = [i for i in range(len(members)) if i not in victims]
        plans = []
        for victim in victims:
            drawn = self._select(fitness[survivors], min(2, len(survivors)), generator)
            if self.settings.selection not in BLIND:
                # The order in which they were drawn is chance; X4 must know the better one.
                drawn = [i for i in ranked(fitness[survivors]) if i in drawn]
            parents = [survivors[i] for i in drawn]
            plans.append(
                Replacement(
                    victim=members[victim],
                    parents=tuple(members[i] for i in parents),
                    victim_fitness=float(fitness[victim]),
                    parent_fitness=tuple(float(fitness[i]) for i in parents),
                )
            )
        return plans

    def inherited_rating(self, parents: Sequence[Rating], initial: Rating) -> Rating:
        """What is believed of a child before its first match.

        mu is the mean of the parents' mu. The variance is the mean of the parents' variances plus
        `widen` squared (what an operator does to skill is not known before it was measured), but
        sigma is at most `initial.sigma`: of nobody is less known than of a beginner.
        """
        mu = math.fsum(rating.mu for rating in parents) / len(parents)
        variance = math.fsum(rating.sigma**2 for rating in parents) / len(parents)
        return Rating(
            mu, min(initial.sigma, math.sqrt(variance + self.settings.child_sigma_increase**2))
        )

    def _victims(self, fitness: Fitness, members: Sequence[Member], step: int) -> list[int]:
        kept = set(ranked(fitness)[: self.settings.elites])
        for index, member in enumerate(members):
            # Founders are not protected: they have been rated since the first step.
            if member.generation and step - member.born < self.settings.grace_period:
                kept.add(index)
        born = [member.born for member in members]
        order = REPLACEMENT.find(self.settings.replacement).function(fitness, born)
        return [index for index in order if index not in kept][: self.replaced(len(fitness))]

    def _select(self, fitness: Fitness, count: int, generator: np.random.Generator) -> list[int]:
        function = SELECTION.find(self.settings.selection).function
        return function(fitness, count, generator, **self.settings.selection_options)
