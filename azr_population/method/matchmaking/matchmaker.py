"""From ratings to a step's matches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from azr_population.method.matchmaking.draw import Weights, draw_pairs
from azr_population.method.matchmaking.pfsp import WEIGHTINGS, Odds
from azr_population.method.members.member import Member
from azr_population.method.members.rating import RatingSystem


@dataclass(frozen=True)
class Match:
    """A teacher paired with a student for one step; both the same for the single agent."""

    teacher: Member
    student: Member


class Matchmaker:
    """Draws matches by one PFSP weighting.

    Args:
        ratings: turns two ratings into odds.
        weighting: a name in `WEIGHTINGS`.
        options: keyword options of the weighting, such as `k` of `hard`.

    Raises UserError: the weighting is unknown or does not take an option; the message lists names.
    """

    def __init__(
        self,
        ratings: RatingSystem,
        weighting: str = "balanced",
        options: Mapping[str, float] | None = None,
    ) -> None:
        self.ratings = ratings
        self.weighting = WEIGHTINGS.find(weighting)
        self.options = dict(options or {})
        self.weighting.refuse_unknown("matchmaking.options", self.options)
        self.weighting.function(Odds(0.5, 0.5), **self.options)

    def odds(self, teacher: Member, student: Member) -> Odds:
        """What the ratings say about the pairing now."""
        return Odds(
            p=self.ratings.win_probability(student.rating, teacher.rating),
            quality=self.ratings.quality(student.rating, teacher.rating),
        )

    def weights(self, teachers: Sequence[Member], students: Sequence[Member]) -> Weights:
        """The weight of every pairing, float64 [T, S]."""
        return np.array(
            [
                [self.weighting.function(self.odds(t, s), **self.options) for s in students]
                for t in teachers
            ],
            dtype=np.float64,
        )

    def draw(
        self,
        teachers: Sequence[Member],
        students: Sequence[Member],
        generator: np.random.Generator,
    ) -> list[Match]:
        """The matches of a step in teacher order: lcm(T, S) of them, every member in as many as any
        other of its role, no pair twice; see `draw_pairs`."""
        pairs = draw_pairs(self.weights(teachers, students), generator)
        return [Match(teachers[t], students[s]) for t, s in pairs]
