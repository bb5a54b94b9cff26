"""The population of an AZR run: who meets whom, ratings, births, and what a checkpoint needs.

The same pieces as a local run (`selfplay.loop`), driven by AZR's loop instead of ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from azr_population.azr.settings import PopulationSettings
from azr_population.errors import UserError
from azr_population.evolution.replacement import Replacement
from azr_population.matchmaking import Match, Matchmaker
from azr_population.members import Member, RatingSystem, Role, Roster
from azr_population.selfplay.rows import Row, shares
from azr_population.selfplay.streams import Streams
from azr_population.selfplay.turnover import Making, Turnover, rate_matches

Breed = Callable[[int, Sequence[int], dict[str, Any], int], tuple[Any, ...]]
"""(slot of the child, slots of the parents, keywords of `breed`, seed) -> the fields of `Making`:
operator, its options, its step sizes."""


class Population:
    """Roster, matches of the step, ratings and rewards. `step` is the step that is being played."""

    def __init__(self, settings: PopulationSettings, learning_rate: float) -> None:
        self.settings = settings
        self.streams = Streams(settings.seed)
        self.ratings = RatingSystem(
            tau=settings.matchmaking.tau,
            draw_probability=settings.matchmaking.draw_probability,
            forfeit=settings.matchmaking.forfeit,
        )
        self.roster = Roster.make(settings.teachers, settings.students, self.ratings.initial)
        self.matchmaker = Matchmaker(
            self.ratings, settings.matchmaking.weighting, settings.matchmaking.options
        )
        self.turnover = Turnover(settings.evolution, self.streams, self.ratings.initial)
        self.step = 0
        self.matches: list[Match] = []
        self._learning_rate = learning_rate

    def begin_step(self, step: int) -> None:
        """Draws the matches of a step."""
        self.step = step
        self.matches = self.matchmaker.draw(
            self.roster.teachers, self.roster.students, self.streams.numpy("match", step)
        )

    def opponents(self, teachers: Sequence[int]) -> list[Match]:
        """The match that each row of proposals belongs to.

        `teachers` are the slots of the rows' teachers; a teacher's rows are shared out evenly, in
        order, over its matches of the step.
        """
        rows = Counter(teachers)
        queues: dict[int, list[Match]] = {}
        for slot, count in rows.items():
            own = [match for match in self.matches if match.teacher.slot == slot]
            queues[slot] = [
                match
                for match, share in zip(own, shares(count, len(own)), strict=True)
                for _ in range(share)
            ]
        return [queues[slot].pop(0) for slot in teachers]

    def learning_rates(self) -> dict[int, float]:
        """AdamW's step of every member, by slot."""
        settings = self.settings
        student = settings.student_lr or 10.0 * self._learning_rate
        rates = {
            Role.STUDENT: student,
            Role.TEACHER: settings.teacher_lr or 0.3 * student,
            Role.AGENT: settings.agent_lr or student,
        }
        return {member.slot: rates[member.role] for member in self.roster}

    def best_student(self) -> Member:
        """Who sits AZR's validation: the student with the best conservative rating."""
        return max(self.roster.students, key=lambda member: member.rating.conservative)

    def rate(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Rates the step's matches by their rows; the lines of `matches.jsonl`."""
        return rate_matches(self.step, self.matches, rows, self.matchmaker)

    def remember_rewards(self, figures: dict[str, dict[str, Any]]) -> None:
        """Notes the members' mean rewards of the step, for fitness functions that use them."""
        self.turnover.remember({name: own.get("reward") for name, own in figures.items()})

    def evolve(self, breed: Breed) -> list[dict[str, Any]]:
        """At its interval, replaces the worst members; the lines of `lineage.jsonl`."""

        def make(replacement: Replacement, recipe: dict[str, Any], seed: int) -> Making:
            parents = [parent.slot for parent in replacement.parents]
            return Making(*breed(replacement.victim.slot, parents, recipe, seed))

        return self.turnover.replace(self.step, self.roster, make)

    def operators(self) -> dict[str, Any]:
        """The operators' credit, for the step's line of `metrics.jsonl`."""
        return self.turnover.operators(self.step)

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {"step": self.step, "roster": self.roster.to_json(), **self.turnover.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """The inverse of `state`.

        Raises:
            UserError: the state is of another population.
        """
        roster = Roster.from_json(state["roster"])
        theirs, ours = ([member.name for member in one] for one in (roster, self.roster))
        if theirs != ours:
            raise UserError(
                f"the checkpoint holds {', '.join(theirs)}, and population={self.settings.name} "
                f"has {', '.join(ours)}; resume with the same population, or give another "
                "trainer.experiment_name"
            )
        self.step = state["step"]
        self.roster = roster
        self.turnover.load_state(state)
