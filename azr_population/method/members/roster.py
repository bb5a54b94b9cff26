"""The roster: all members of a run, by name, by slot and by role."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from azr_population.errors import UserError
from azr_population.files import check_name
from azr_population.method.members.member import Member, Rating, Role


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
            raise UserError(f"there is no member {name}; this run has {names}") from None

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members)

    def anchor(self, mu: float) -> float:
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
        """The roster written by `to_json`, with bit-identical ratings. Raises UserError: a row
        lacks something, or holds what no member can have."""
        try:
            return cls(_member(row) for row in rows)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"the stored members are damaged: {error!r}") from error

    def _without(self, role: Role) -> list[Member]:
        return [member for member in self._members if member.role is not role]


def _member(row: Mapping[str, Any]) -> Member:
    role = Role(row["role"])
    name = check_name(row["name"])
    evolved = row.get("hyperparameters", {})
    numbers = [row["mu"], row["sigma"], *row.get("step_sizes", {}).values(), *evolved.values()]
    counts = [row["slot"], row["generation"], row["born"]]
    if not name.startswith(f"{role}_"):
        raise ValueError(f"{name} as a {role}")
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError(f"{name}: slot, generation, born = {counts}")
    if not all(isinstance(number, (int, float)) and math.isfinite(number) for number in numbers):
        raise ValueError(f"{name}: mu, sigma, step sizes = {numbers}")
    if not all(number > 0 for number in evolved.values()):
        raise ValueError(f"{name}: hyperparameters = {evolved}")
    if row["sigma"] <= 0:
        raise ValueError(f"{name}: sigma = {row['sigma']}")
    return Member(
        name=name,
        role=role,
        slot=row["slot"],
        rating=Rating(row["mu"], row["sigma"]),
        generation=row["generation"],
        born=row["born"],
        step_sizes=dict(row.get("step_sizes", {})),
        hyperparameters=dict(evolved),
    )
