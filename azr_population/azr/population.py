"""The population of an AZR run: who meets whom, ratings, births, and what a checkpoint needs.

The same pieces as a local run (`selfplay.loop`), driven by AZR's loop instead of ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from azr_population.azr.settings import PopulationSettings
from azr_population.errors import UserError
from azr_population.evolution.replacement import PopulationBasedTraining, Replacement
from azr_population.matchmaking import Match, Matchmaker
from azr_population.members import LineageRecord, Member, RatingSystem, Role, Roster
from azr_population.selfplay.rows import Row, shares
from azr_population.selfplay.streams import Streams
from azr_population.selfplay.turnover import give_birth, plan_replacements, rate_matches

Breed = Callable[[int, Sequence[int], int], tuple[str, dict[str, Any]]]
"""(slot of the child, slots of the parents, seed) -> (operator, its options)."""


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
        evolution = settings.evolution
        self.evolution = PopulationBasedTraining(
            fraction=evolution.fraction,
            elites=evolution.elites,
            fitness=evolution.fitness,
            selection=evolution.selection,
            replacement=evolution.replacement,
            selection_options=evolution.selection_options,
            widen=evolution.widen,
        )
        self.step = 0
        self.matches: list[Match] = []
        self._rewards: dict[str, list[float]] = {}
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
        for name, own in figures.items():
            if own.get("reward") is not None:
                self._rewards.setdefault(name, []).append(own["reward"])

    def evolve(self, breed: Breed) -> list[dict[str, Any]]:
        """At its interval, replaces the worst members; the lines of `lineage.jsonl`."""
        interval = self.settings.evolution.interval
        if not interval or self.step % interval:
            return []
        plan = plan_replacements(
            self.step, self.roster, self._rewards, self.evolution, self.streams
        )
        self._rewards = {}
        return [self._replace(replacement, breed).to_json() for replacement in plan]

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {"step": self.step, "roster": self.roster.to_json(), "rewards": self._rewards}

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
        self._rewards = state["rewards"]

    def _replace(self, replacement: Replacement, breed: Breed) -> LineageRecord:
        victim = replacement.victim
        seed = self.streams.integer(f"breed {victim.name}", self.step)
        operator, options = breed(
            victim.slot, [parent.slot for parent in replacement.parents], seed
        )
        return give_birth(
            self.step, replacement, operator, options, seed, self.evolution, self.ratings.initial
        )
