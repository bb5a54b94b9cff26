"""Weightings of prioritized fictitious self-play (PFSP): how much a pairing is worth training on.

In AlphaStar a learner draws its opponent with weight f(P(the learner wins)). Here both sides learn;
the student stands for the learner and the teacher for the opponent.
"""

from collections.abc import Callable
from dataclasses import dataclass

from azr_population.errors import UserError
from azr_population.registry import Registry


@dataclass(frozen=True)
class Odds:
    """What the ratings say about a pairing: `p`, the chance that the student beats the teacher, and
    `quality`, TrueSkill's match quality; both in [0, 1]."""

    p: float
    quality: float


WEIGHTINGS: Registry[Callable[..., float]] = Registry("matchmaking.weighting")


@WEIGHTINGS.register(
    "balanced", "PFSP f_var, Vinyals et al. 2019 (AlphaStar), Methods; PopuLoRA: near-balanced"
)
def balanced(odds: Odds) -> float:
    """p (1 - p): most weight where the outcome is open."""
    return odds.p * (1.0 - odds.p)


@WEIGHTINGS.register("quality", "TrueSkill match quality, Herbrich et al. 2006, section 4")
def quality(odds: Odds) -> float:
    """TrueSkill's match quality: like `balanced`, but uncertain ratings count less."""
    return odds.quality


@WEIGHTINGS.register("hard", "PFSP f_hard, Vinyals et al. 2019 (AlphaStar), Methods")
def hard(odds: Odds, k: float = 2.0) -> float:
    """(1 - p)^k: most weight on the teachers that the student seldom beats; k >= 0."""
    if k < 0.0:
        raise UserError(
            f"matchmaking.options.k={k} must not be negative", key="matchmaking.options.k"
        )
    return (1.0 - odds.p) ** k


@WEIGHTINGS.register("uniform", "fictitious self-play, Heinrich et al. 2015")
def uniform(odds: Odds) -> float:
    """1: ratings play no part, the ablation of matchmaking."""
    return 1.0
