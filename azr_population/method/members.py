"""The members of a run: what one is, its TrueSkill rating, its lineage, and the roster of all.

Ratings: Herbrich, Minka, Graepel, "TrueSkill: A Bayesian Skill Rating System" (NIPS 2006), through
the `trueskill` package. What a game is here, and when skill may drift, is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import NormalDist
from typing import Any

import trueskill

from azr_population.errors import UserError
from azr_population.files import check_name


class Role(str, Enum):
    """What a member does in a step; PopuLoRA's teachers only propose, its students only solve."""

    TEACHER = "teacher"
    STUDENT = "student"
    AGENT = "agent"
    """The single self-playing model of AZR: proposes and solves."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Rating:
    """A TrueSkill belief: skill ~ N(mu, sigma^2), in TrueSkill points (25 +- 25/3 at the start)."""

    mu: float = 25.0
    sigma: float = 25.0 / 3.0

    @property
    def conservative(self) -> float:
        """mu - 3 sigma: the skill the member has with 99.9% probability."""
        return self.mu - 3.0 * self.sigma


@dataclass
class Member:
    """One LoRA adapter's identity. `slot` is its place in the bank and never changes.

    `name` (`teacher_0`) belongs to the slot; `generation` counts how often the slot's adapter was
    replaced; `born` is the step of the last replacement. `step_sizes` are those that made it and
    its forebears, by operator and option (`full_gaussian.eps`): what self-adaptation inherits.
    """

    name: str
    role: Role
    slot: int
    rating: Rating = field(default_factory=Rating)
    generation: int = 0
    born: int = 0
    step_sizes: dict[str, float] = field(default_factory=dict)
    hyperparameters: dict[str, float] = field(default_factory=dict)
    """Those that evolve with its weights, by name (`lr`)."""
    skill: float | None = None
    """What was measured at this step for a fitness that needs more than ratings; None elsewhere."""

    @property
    def rng_key(self) -> str:
        """What the random streams of an eval are named by: its name as a student's, so that the
        single agent and the first student of another population draw alike."""
        return self.name.replace(str(Role.AGENT), str(Role.STUDENT))


class Outcome(str, Enum):
    """How one game, that is one proposed task, ended."""

    STUDENT_WINS = "student_wins"
    TEACHER_WINS = "teacher_wins"
    DRAW = "draws"
    FORFEIT = "forfeits"
    """The teacher's proposal was invalid."""

    def __str__(self) -> str:
        return self.value


def outcome_of(solve_rate: float | None) -> Outcome:
    """The outcome of a task by the share of its attempts that solved it; None: it was invalid.

    The student wins above one half, the teacher below, exactly one half is a draw.
    """
    if solve_rate is None:
        return Outcome.FORFEIT
    if solve_rate == 0.5:
        return Outcome.DRAW
    return Outcome.STUDENT_WINS if solve_rate > 0.5 else Outcome.TEACHER_WINS


def tally(games: Sequence[Outcome]) -> dict[str, int]:
    """Counts for a match record: `student_wins`, `teacher_wins`, `draws`, `forfeits`."""
    return {outcome.value: games.count(outcome) for outcome in Outcome}


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
        counted = (game for game in games if self.forfeit or game is not Outcome.FORFEIT)
        played = sorted(counted, key=lambda game: game is Outcome.FORFEIT)
        if not played:
            return teacher, student
        proposer, solver = self._before_match(teacher), self._before_match(student)
        for game in played:
            ranks = {Outcome.TEACHER_WINS: (0, 1), Outcome.DRAW: (0, 0)}.get(game, (1, 0))
            (proposer,), (rated_solver,) = self._trueskill.rate(
                [(proposer,), (solver,)], ranks=ranks
            )
            # A forfeit costs the teacher; the student did nothing that it could be paid for.
            solver = solver if game is Outcome.FORFEIT else rated_solver
        return Rating(proposer.mu, proposer.sigma), Rating(solver.mu, solver.sigma)

    def win_probability(self, rating: Rating, other: Rating) -> float:
        """The chance in [0, 1] that the first performs better than `other` in a game, draws set
        aside: Phi((mu1 - mu2) / sqrt(2 beta^2 + sigma1^2 + sigma2^2))."""
        variance = 2.0 * self._trueskill.beta**2 + rating.sigma**2 + other.sigma**2
        return NormalDist().cdf((rating.mu - other.mu) / math.sqrt(variance))

    def quality(self, first: Rating, other: Rating) -> float:
        """TrueSkill's match quality in [0, 1]: the chance of a draw relative to a perfect match."""
        ratings = [self._trueskill.create_rating(r.mu, r.sigma) for r in (first, other)]
        return trueskill.quality_1vs1(*ratings, env=self._trueskill)

    def _before_match(self, rating: Rating) -> trueskill.Rating:
        return self._trueskill.create_rating(rating.mu, math.hypot(rating.sigma, self.tau))


class Roster:
    """All members of a run in slot order: teachers, then students; or the single agent."""

    def __init__(self, members: Iterable[Member]) -> None:
        self._members = sorted(members, key=lambda member: member.slot)
        self._by_name = {member.name: member for member in self._members}
        if [member.slot for member in self._members] != list(range(len(self._members))):
            raise ValueError("the members' slots must be 0, 1, 2, ... without gaps")
        if len(self._by_name) != len(self._members):
            raise ValueError("two members have the same name")

    @classmethod
    def make(cls, teachers: int, students: int, rating: Rating | None = None) -> Roster:
        """A new roster of so many teachers and students; (0, 0) is AZR's single agent. Raises
        UserError: one of the two numbers is 0 and the other is not, or one is negative."""
        start = rating or Rating()
        if (teachers, students) == (0, 0):
            return cls([Member("agent_0", Role.AGENT, 0, start)])
        if teachers < 1 or students < 1:
            raise UserError(
                f"population.teachers={teachers}, population.students={students}: give at least "
                "one of each, or 0 of both for the single agent",
                key="population.teachers",
            )
        roles = [Role.TEACHER] * teachers + [Role.STUDENT] * students
        numbers = [*range(teachers), *range(students)]
        return cls(
            Member(f"{role}_{number}", role, slot, start)
            for slot, (role, number) in enumerate(zip(roles, numbers, strict=True))
        )

    @property
    def teachers(self) -> list[Member]:
        """The members that propose: the teachers, or the single agent."""
        return self._without(Role.STUDENT)

    @property
    def students(self) -> list[Member]:
        """The members that solve: the students, or the single agent."""
        return self._without(Role.TEACHER)

    @property
    def sub_populations(self) -> dict[Role, list[Member]]:
        """The members of each role that occurs, in slot order."""
        roles = dict.fromkeys(member.role for member in self._members)
        return {role: [m for m in self._members if m.role is role] for role in roles}

    def __getitem__(self, name: str) -> Member:
        try:
            return self._by_name[name]
        except KeyError:
            names = ", ".join(self._by_name)
            raise UserError(f"member {name} does not exist; this run has {names}") from None

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members)

    def recenter_ratings(self, mu: float) -> float:
        """Moves every rating by the same, so that the students' mean is `mu`; returns by how much.

        Only differences of ratings mean anything, and this changes none. Without it the scale would
        drift: births hand the mu of the best to the worst, forfeits cost teachers and pay nobody.
        """
        students = self.students
        moved = mu - math.fsum(member.rating.mu for member in students) / len(students)
        for member in self:
            member.rating = Rating(member.rating.mu + moved, member.rating.sigma)
        return moved

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data for a checkpoint."""
        return [
            {
                "name": member.name,
                "role": member.role.value,
                "slot": member.slot,
                "mu": member.rating.mu,
                "sigma": member.rating.sigma,
                "generation": member.generation,
                "born": member.born,
                "step_sizes": dict(member.step_sizes),
                "hyperparameters": dict(member.hyperparameters),
            }
            for member in self._members
        ]

    @classmethod
    def from_json(cls, rows: Sequence[dict[str, Any]]) -> Roster:
        """The roster written by `to_json`, with bit-identical ratings."""
        return cls(
            Member(
                check_name(row["name"]),
                Role(row["role"]),
                row["slot"],
                Rating(row["mu"], row["sigma"]),
                row["generation"],
                row["born"],
                dict(row["step_sizes"]),
                dict(row["hyperparameters"]),
            )
            for row in rows
        )

    def _without(self, role: Role) -> list[Member]:
        return [member for member in self._members if member.role is not role]
