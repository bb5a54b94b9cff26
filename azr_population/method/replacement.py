"""Replacement: which members are replaced, and by children of which parents (population based
training, PBT).

Fitness compares members of one sub-population only, because ratings mean nothing across roles.
Source: PopuLoRA's replacement step (the worst members are replaced by children of better ones);
Jaderberg et al. 2017 for PBT. Shares, elites and the child's rating are ours.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from azr_population.config.schema import EvolutionConfig
from azr_population.errors import UserError
from azr_population.method.members import Member, Rating
from azr_population.registry import Registry

FITNESS: Registry[Callable[[Member, Sequence[float]], float]] = Registry("evolution.fitness")
"""Functions of a member and its mean reward per step since the last replacement or its birth,
whichever is later. Higher is fitter; -inf: unknown."""


@FITNESS.register(
    "conservative_rating", "mu - 3 sigma, Herbrich et al. 2006 (TrueSkill), section 4"
)
def conservative_rating(member: Member, rewards: Sequence[float]) -> float:
    """The lower bound of the member's skill, in TrueSkill points."""
    return member.rating.conservative


@FITNESS.register("mu", "mean of the TrueSkill belief")
def mu(member: Member, rewards: Sequence[float]) -> float:
    """The expected skill in TrueSkill points; a wide sigma does not count against newcomers."""
    return member.rating.mu


@FITNESS.register("constant", "the ablation of fitness")
def constant(member: Member, rewards: Sequence[float]) -> float:
    """The same for all: the slot number decides who is replaced, independent of skill."""
    return 0.0


def measured(member: Member, rewards: Sequence[float]) -> float:
    """The measured skill; mu - 3 sigma for a member that was not measured."""
    return member.rating.conservative if member.skill is None else member.skill


MEASURED = ("validation_eval", "crossplay")
"""Fitness that local runs measure before they replace; see `measured_fitness.py`."""
FITNESS.register("validation_eval", "students' greedy score on a separate eval")(measured)
FITNESS.register("crossplay", "every student against the step's tasks of every teacher")(measured)


@FITNESS.register("mean_reward", "PBT's moving average of the objective, Jaderberg et al. 2017")
def mean_reward(member: Member, rewards: Sequence[float]) -> float:
    """The mean reward of the interval; it depends on the opponents that the member happened to
    meet."""
    return math.fsum(rewards) / len(rewards) if rewards else -math.inf


Fitness = NDArray[np.float64]
SELECTION: Registry[Callable[..., list[int]]] = Registry("evolution.selection")


def ranked(fitness: Fitness) -> list[int]:
    """Indices from fittest to least fit; NaN counts as least, ties go to the lower index."""
    values = np.where(np.isnan(fitness), -np.inf, fitness)
    return [int(i) for i in np.argsort(-values, kind="stable")]


def _require(condition: bool, text: str) -> None:
    if not condition:
        key = f"evolution.selection_options.{text.partition('=')[0]}"
        raise UserError(f"evolution.selection_options.{text}", key=key)


@SELECTION.register("truncation", "PBT exploit by truncation, Jaderberg et al. 2017, section 4.1.1")
def truncation(
    fitness: Fitness, count: int, generator: np.random.Generator, top: float = 0.5
) -> list[int]:
    """Any of the best `top` share of the candidates (at least `count` of them), equally likely."""
    _require(0.0 < top <= 1.0, f"top={top} must be above 0 and at most 1")
    best = ranked(fitness)[: max(count, math.ceil(top * len(fitness)))]
    return [best[i] for i in generator.permutation(len(best))[:count]]


@SELECTION.register("tournament", "Goldberg and Deb 1991")
def tournament(
    fitness: Fitness, count: int, generator: np.random.Generator, size: int = 2
) -> list[int]:
    """For each parent, the fittest of `size` candidates drawn from those not yet chosen."""
    _require(size >= 1, f"size={size} must be at least 1")
    place = {index: rank for rank, index in enumerate(ranked(fitness))}
    candidates = list(range(len(fitness)))
    chosen: list[int] = []
    for _ in range(count):
        entrants = generator.permutation(len(candidates))[:size]
        winner = min((candidates[i] for i in entrants), key=place.__getitem__)
        candidates.remove(winner)
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
    _require(base > 0.0, f"base={base} must be above 0")
    finite = np.isfinite(fitness)
    if not finite.any():
        return random(fitness, count, generator)
    # Members with unknown fitness compete as the worst.
    values = np.where(finite, fitness, fitness[finite].min())
    spread = values.max() - values.min()
    wheel = values - values.min() + base * spread if spread > 0 else np.ones(len(values))
    return [int(i) for i in generator.choice(len(values), count, False, wheel / wheel.sum())]


BLIND = frozenset({"random"})
"""Selections that ignore fitness, so the order of the parents is random too."""


@SELECTION.register("random", "the ablation of parent selection")
def random(fitness: Fitness, count: int, generator: np.random.Generator) -> list[int]:
    """Any candidate, equally likely; selection pressure comes from replacement alone."""
    return [int(i) for i in generator.permutation(len(fitness))[:count]]


REPLACEMENT: Registry[Callable[[Fitness, Sequence[int]], list[int]]] = Registry(
    "evolution.replacement"
)
"""Functions (fitness float64 [n], steps of birth [n]) -> all indices, the first to be replaced in
front. Elites are removed afterwards."""


@REPLACEMENT.register("worst", "replace worst, Whitley 1989 (GENITOR); PopuLoRA, abstract")
def worst(fitness: Fitness, born: Sequence[int]) -> list[int]:
    """The least fit go first."""
    return ranked(fitness)[::-1]


@REPLACEMENT.register("oldest", "regularized (aging) evolution, Real et al. 2019")
def oldest(fitness: Fitness, born: Sequence[int]) -> list[int]:
    """The oldest go first; of equally old ones the least fit."""
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
    """The replacement step by a run's `evolution` group. Raises UserError: an unknown name (the
    message lists the valid ones), option or value."""

    def __init__(self, settings: EvolutionConfig) -> None:
        FITNESS.find(settings.fitness)
        REPLACEMENT.find(settings.replacement)
        options = settings.selection_options
        SELECTION.find(settings.selection).refuse_unknown("evolution.selection_options", options)
        self.settings = settings
        self._select(np.zeros(2), 1, np.random.default_rng(0))

    def replaced(self, size: int) -> int:
        """How many of `size` members are replaced at a time if enough are neither elites nor
        protected newborns: `replace_fraction` of them, halves rounded up, at least one."""
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
            step: the current step, for the grace period of newborns.

        Returns:
            At most `len(members) - elites` replacements, the first victim first; fewer if the
            others are protected. Every parent survives the step, so replacements can be carried
            out in any order.
        """
        fitness = np.array(self.fitness_of(members, rewards))
        victims = self._victims(fitness, members, step)
        survivors = [i for i in range(len(members)) if i not in victims]
        plans = []
        for victim in victims:
            chosen = self._select(fitness[survivors], min(2, len(survivors)), generator)
            if self.settings.selection not in BLIND:
                # X4 (extrapolative) needs the better parent first.
                chosen = [i for i in ranked(fitness[survivors]) if i in chosen]
            parents = [survivors[i] for i in chosen]
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
        """A child's rating before its first match.

        mu is the mean of the parents' mu. The variance is the mean of the parents' variances plus
        `child_sigma_increase` squared, because the operator's effect on skill is unknown. sigma is
        at most `initial.sigma`.
        """
        mu = math.fsum(rating.mu for rating in parents) / len(parents)
        variance = math.fsum(rating.sigma**2 for rating in parents) / len(parents)
        return Rating(
            mu, min(initial.sigma, math.sqrt(variance + self.settings.child_sigma_increase**2))
        )

    def _victims(self, fitness: Fitness, members: Sequence[Member], step: int) -> list[int]:
        protected = set(ranked(fitness)[: self.settings.elites])
        for index, member in enumerate(members):
            # Founders are not protected: they have been rated since the first step.
            if member.generation and step - member.born < self.settings.grace_period:
                protected.add(index)
        born = [member.born for member in members]
        order = REPLACEMENT.find(self.settings.replacement).function(fitness, born)
        return [index for index in order if index not in protected][: self.replaced(len(fitness))]

    def _select(self, fitness: Fitness, count: int, generator: np.random.Generator) -> list[int]:
        function = SELECTION.find(self.settings.selection).function
        return function(fitness, count, generator, **self.settings.selection_options)
