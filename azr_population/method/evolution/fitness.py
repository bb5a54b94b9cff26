"""Fitness: the number by which members of one sub-population are compared.

Ratings compare within a sub-population only: all its members meet the same other side.
"""

import math
from collections.abc import Callable, Sequence

from azr_population.method.members.member import Member
from azr_population.registry import Registry

FITNESS: Registry[Callable[[Member, Sequence[float]], float]] = Registry("evolution.fitness")
"""Functions of a member and its mean rewards of each step since the last replacement, or since its
own birth where that was later. Higher is fitter; -inf where nothing is known."""


@FITNESS.register(
    "conservative_rating", "mu - 3 sigma, Herbrich et al. 2006 (TrueSkill), section 4"
)
def conservative_rating(member: Member, rewards: Sequence[float]) -> float:
    """The skill that the member has almost surely, in TrueSkill points."""
    return member.rating.conservative


@FITNESS.register("mu", "mean of the TrueSkill belief")
def mu(member: Member, rewards: Sequence[float]) -> float:
    """The expected skill in TrueSkill points; does not hold a wide sigma against newcomers."""
    return member.rating.mu


@FITNESS.register("constant", "the ablation of fitness")
def constant(member: Member, rewards: Sequence[float]) -> float:
    """The same for everybody: who goes is then a matter of its number, which says nothing."""
    return 0.0


def measured(member: Member, rewards: Sequence[float]) -> float:
    """What the host has measured; the conservative rating of whom it has not measured."""
    return member.rating.conservative if member.skill is None else member.skill


MEASURED = ("validation_eval", "crossplay")
"""Fitness that local runs measure before they replace; see `method/skill.py`."""
FITNESS.register("validation_eval", "the best that fitness can know; of students")(measured)
FITNESS.register("crossplay", "every student against the step's tasks of every teacher")(measured)


@FITNESS.register("mean_reward", "PBT's moving average of the objective, Jaderberg et al. 2017")
def mean_reward(member: Member, rewards: Sequence[float]) -> float:
    """The mean of the interval's rewards, which depends on whom the member happened to meet."""
    return math.fsum(rewards) / len(rewards) if rewards else -math.inf
