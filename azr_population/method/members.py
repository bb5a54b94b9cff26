"""Members, their TrueSkill ratings, and the roster of a run.

Ratings: Herbrich, Minka, Graepel, "TrueSkill: A Bayesian Skill Rating System" (NIPS 2006), through
the `trueskill` package. What a game is here, and when skill may drift, is ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import NormalDist
from typing import Annotated, Any

import trueskill
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
)

from azr_population.errors import UserError
from azr_population.files import check_name
from azr_population.runs.records import Role as Role
from azr_population.runs.records import lower_bound


@dataclass(frozen=True)
class Rating:
    """A TrueSkill rating: skill ~ N(mu, sigma^2) in TrueSkill points; 25 and 25/3 at the start."""

    mu: float = 25.0
    sigma: float = 25.0 / 3.0

    @property
    def conservative(self) -> float:
        """mu - 3 sigma, which members of a role are compared by."""
        return lower_bound(self.mu, self.sigma)


@dataclass
class Member:
    """One LoRA adapter. `slot` is its index in the bank and never changes.

    `name` (`teacher_0`) belongs to the slot; `generation` counts the slot's replacements; `born` is
    the step of the last one.
    """

    name: str
    role: Role
    slot: int
    rating: Rating = field(default_factory=Rating)
    generation: int = 0
    born: int = 0
    hyperparameters: dict[str, float] = field(default_factory=dict)
    """Its values of the hyperparameters that evolve, by name (`lr`)."""

    @property
    def rng_key(self) -> str:
        """The key of its random streams in an eval: its name as a student, so that the single agent
        and another population's first student draw the same numbers."""
        return self.name.replace(str(Role.AGENT), str(Role.STUDENT))


class _StoredMember(BaseModel):
    """A member as a checkpoint has it, which may come from anybody."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)

    name: Annotated[str, AfterValidator(check_name)]
    role: Role = Field(strict=False)
    slot: NonNegativeInt
    mu: float = Field(ge=-1e4, le=1e4)
    sigma: float = Field(gt=0, le=1e3)
    generation: NonNegativeInt
    born: NonNegativeInt
    hyperparameters: dict[str, PositiveFloat]


class Outcome(str, Enum):
    """The outcome of one game: one proposed task."""

    STUDENT_WINS = "student_wins"
    TEACHER_WINS = "teacher_wins"
    DRAW = "draws"
    INVALID = "invalid"
    """The teacher's proposal was invalid."""

    def __str__(self) -> str:
        return self.value


def outcome_of(solve_rate: float | None) -> Outcome:
    """The outcome of a task by its solve rate; None: it was invalid.

    The student wins above one half, the teacher below, exactly one half is a draw.
    """
    if solve_rate is None:
        return Outcome.INVALID
    if solve_rate == 0.5:
        return Outcome.DRAW
    return Outcome.STUDENT_WINS if solve_rate > 0.5 else Outcome.TEACHER_WINS


def tally(games: Sequence[Outcome]) -> dict[str, int]:
    """Counts for a match record: `student_wins`, `teacher_wins`, `draws`, `invalid`."""
    return {outcome.value: games.count(outcome) for outcome in Outcome}


_MOST_APART = 10.0
"""Standard deviations between two ratings above which a result changes them as it does at this
distance."""


class RatingSystem:
    """TrueSkill; it holds no ratings.

    mu, sigma, beta and the chance of a draw between equals are TrueSkill's defaults: 25, 25/3 and
    25/6 points, 0.1. A teacher loses a game by an invalid proposal, and the student's rating does
    not change.

    Args:
        tau: standard deviation of the skill's drift in a game, in points. All games of a match are
            played with the same weights, so the drift of all of them, tau times the root of their
            number, is added before the first. The default is half of TrueSkill's: it predicts
            results best of those with which older members are not rated too high beside children
            (perf/ratings.py).
    """

    def __init__(self, tau: float = 25.0 / 600.0) -> None:
        self.tau = tau
        self._trueskill = trueskill.TrueSkill(tau=0.0, draw_probability=0.1)

    def rate_match(
        self, teacher: Rating, student: Rating, games: Sequence[Outcome]
    ) -> tuple[Rating, Rating]:
        """The ratings of (teacher, student) after a match, one game per proposed task.

        Games are rated in the given order (TrueSkill is sequential), invalid ones last: otherwise
        the student would play against a teacher whose rating they have lowered. A match without
        games changes nothing.
        """
        played = sorted(games, key=lambda game: game is Outcome.INVALID)
        if not played:
            return teacher, student
        proposer = self._before_match(teacher, len(played))
        solver = self._before_match(student, len(played) - played.count(Outcome.INVALID))
        # Beyond this many deviations of a game's margin `trueskill` divides by 0.
        variance = 2 * self._trueskill.beta**2 + proposer.sigma**2 + solver.sigma**2
        most, gap = _MOST_APART * math.sqrt(variance), teacher.mu - student.mu
        excess = gap - max(-most, min(gap, most))
        proposer = self._trueskill.create_rating(proposer.mu - excess, proposer.sigma)
        for game in played:
            ranks = {Outcome.TEACHER_WINS: (0, 1), Outcome.DRAW: (0, 0)}.get(game, (1, 0))
            (proposer,), (rated_solver,) = self._trueskill.rate(
                [(proposer,), (solver,)], ranks=ranks
            )
            # An invalid proposal lowers the teacher's rating and leaves the student's.
            solver = solver if game is Outcome.INVALID else rated_solver
        return Rating(proposer.mu + excess, proposer.sigma), Rating(solver.mu, solver.sigma)

    def win_probability(self, rating: Rating, other: Rating) -> float:
        """The probability that `rating` beats `other` in a game, ignoring draws:
        Phi((mu1 - mu2) / sqrt(2 beta^2 + sigma1^2 + sigma2^2))."""
        variance = 2.0 * self._trueskill.beta**2 + rating.sigma**2 + other.sigma**2
        return NormalDist().cdf((rating.mu - other.mu) / math.sqrt(variance))

    def _before_match(self, rating: Rating, games: int) -> trueskill.Rating:
        drift = self.tau * math.sqrt(games)
        return self._trueskill.create_rating(rating.mu, math.hypot(rating.sigma, drift))


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
    def make(cls, teachers: int, students: int) -> Roster:
        """A new roster; 0 teachers and 0 students make AZR's single agent. Raises UserError: only
        one of the two numbers is 0, or one is negative."""
        if (teachers, students) == (0, 0):
            return cls([Member("agent_0", Role.AGENT, 0)])
        if teachers < 1 or students < 1:
            raise UserError(
                f"population.teachers={teachers}, population.students={students}: give at least "
                "one of each, or 0 of both for the single agent",
                key="population.teachers",
            )
        roles = [Role.TEACHER] * teachers + [Role.STUDENT] * students
        numbers = [*range(teachers), *range(students)]
        return cls(
            Member(f"{role}_{number}", role, slot)
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

    def recenter_ratings(self) -> float:
        """Shifts all ratings so that the students' mean is a beginner's, 25; returns the shift.

        Only differences of ratings have a meaning, and they stay. Without it the scale drifts:
        children inherit the mu of good parents, and invalid proposals lower teachers without
        raising anyone.
        """
        students = self.students
        moved = Rating.mu - math.fsum(member.rating.mu for member in students) / len(students)
        for member in self:
            member.rating = Rating(member.rating.mu + moved, member.rating.sigma)
        return moved

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data for a checkpoint."""
        rows = [
            {**vars(member), **vars(member.rating), "role": member.role.value} for member in self
        ]
        return [{name: row[name] for name in _StoredMember.model_fields} for row in rows]

    @classmethod
    def from_json(cls, rows: Sequence[dict[str, Any]]) -> Roster:
        """The roster written by `to_json`, with bit-identical ratings. Raises ValueError: it is
        damaged."""
        members = []
        for row in rows:
            values = _StoredMember.model_validate(row).model_dump()
            rating = Rating(values.pop("mu"), values.pop("sigma"))
            members.append(Member(rating=rating, **values))
        return cls(members)

    def _without(self, role: Role) -> list[Member]:
        return [member for member in self._members if member.role is not role]
