"""TrueSkill ratings of teachers and students from the tasks that were solved and failed.

Source: Herbrich, Minka, Graepel, "TrueSkill: A Bayesian Skill Rating System" (NIPS 2006), through
the `trueskill` package. What a game is here, and when skill may drift, is ours.
"""

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from statistics import NormalDist
from typing import Any

import trueskill

from azr_population.errors import UserError
from azr_population.method.members.member import Rating


class Outcome(str, Enum):
    """How one game, that is one proposed task, ended."""

    STUDENT_WINS = "student_wins"
    TEACHER_WINS = "teacher_wins"
    DRAW = "draw"
    FORFEIT = "forfeit"
    """The teacher's proposal was invalid."""

    def __str__(self) -> str:
        return self.value


def outcome_of(solve_rate: float | None) -> Outcome:
    """The outcome of a task by the share of its attempts that solved it; None: it was invalid.

    The student wins above one half, the teacher below, exactly one half is a draw.
    """
    if solve_rate is None:
        return Outcome.FORFEIT
    if not 0.0 <= solve_rate <= 1.0:
        raise ValueError(f"a solve rate lies in [0, 1], got {solve_rate}")
    if solve_rate == 0.5:
        return Outcome.DRAW
    return Outcome.STUDENT_WINS if solve_rate > 0.5 else Outcome.TEACHER_WINS


def tally(games: Iterable[Outcome]) -> dict[str, int]:
    """Counts for a match record: `student_wins`, `teacher_wins`, `draws`, `forfeits`."""
    played = list(games)
    return {
        "student_wins": played.count(Outcome.STUDENT_WINS),
        "teacher_wins": played.count(Outcome.TEACHER_WINS),
        "draws": played.count(Outcome.DRAW),
        "forfeits": played.count(Outcome.FORFEIT),
    }


_WIDEST_GAP = 30.0
"""Standard deviations between two members beyond which a game is not rated: from about 38 on
TrueSkill's factor graph underflows. Ratings do not get there by playing."""


class RatingSystem:
    """The constants of TrueSkill and everything computed from them; it holds no ratings itself.

    The mean and deviation of a beginner, and the deviation of a performance around the skill, are
    TrueSkill's own: 25, 25/3 and 25/6 points.

    Args:
        tau: standard deviation of the skill's drift per match, in points. TrueSkill adds it before
            every game; here all games of a match are played with the same weights, and only the
            update after it changes the skill, so it is added once per match.
        draw_probability: chance of a draw between equals, in [0, 1).
        forfeit: whether an invalid proposal is a game that the teacher lost (the student's rating
            stays as it is); otherwise no game.
    """

    def __init__(
        self, tau: float = 25.0 / 300.0, draw_probability: float = 0.1, forfeit: bool = True
    ) -> None:
        if not 0.0 <= draw_probability < 1.0:
            raise UserError(
                f"matchmaking.draw_probability={draw_probability} is no chance of a draw; "
                "it must be at least 0 and below 1",
                key="matchmaking.draw_probability",
            )
        self.tau = tau
        self.forfeit = forfeit
        self._trueskill = trueskill.TrueSkill(tau=0.0, draw_probability=draw_probability)

    @property
    def initial(self) -> Rating:
        """The rating of a member that has played nothing."""
        return Rating(self._trueskill.mu, self._trueskill.sigma)

    def rate_match(
        self, teacher: Rating, student: Rating, games: Sequence[Outcome]
    ) -> tuple[Rating, Rating]:
        """The ratings of (teacher, student) after a series of games, one per proposed task.

        The games are rated in the order given (TrueSkill is sequential, so the order matters a
        little), the forfeited ones last: a teacher that they have lowered would be an opponent to
        lose to. A match without a game leaves both ratings as they are.
        """
        kept = (game for game in games if self.forfeit or game is not Outcome.FORFEIT)
        played = sorted(kept, key=lambda game: game is Outcome.FORFEIT)
        if not played:
            return teacher, student
        one, other = self._before_match(teacher), self._before_match(student)
        for game in played:
            if self._gap(one, other) > _WIDEST_GAP:
                continue
            ranks = {Outcome.TEACHER_WINS: (0, 1), Outcome.DRAW: (0, 0)}.get(game, (1, 0))
            (one,), (rated,) = self._trueskill.rate([(one,), (other,)], ranks=ranks)
            # A forfeit costs the teacher; the student did nothing that it could be paid for.
            other = other if game is Outcome.FORFEIT else rated
        return Rating(one.mu, one.sigma), Rating(other.mu, other.sigma)

    def win_probability(self, one: Rating, other: Rating) -> float:
        """The chance in [0, 1] that `one` performs better than `other` in a game, draws set aside.

        Phi((mu1 - mu2) / sqrt(2 beta^2 + sigma1^2 + sigma2^2)).
        """
        return NormalDist().cdf(math.copysign(self._gap(one, other), one.mu - other.mu))

    def quality(self, one: Rating, other: Rating) -> float:
        """TrueSkill's match quality in [0, 1]: the chance of a draw relative to a perfect match."""
        ratings = [self._trueskill.create_rating(r.mu, r.sigma) for r in (one, other)]
        return trueskill.quality_1vs1(*ratings, env=self._trueskill)

    def _gap(self, one: Any, other: Any) -> float:
        """|mu1 - mu2| in standard deviations of the difference of two performances."""
        variance = 2.0 * self._trueskill.beta**2 + one.sigma**2 + other.sigma**2
        return abs(one.mu - other.mu) / math.sqrt(variance)

    def _before_match(self, rating: Rating) -> trueskill.Rating:
        return self._trueskill.create_rating(rating.mu, math.hypot(rating.sigma, self.tau))
