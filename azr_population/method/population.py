"""One population, whoever hosts it: who meets whom, what it is worth, who is replaced.

A step, as both hosts play it: `begin_step` draws the matches, `deal` says which match a teacher's
row belongs to, `reward` fills the rewards in, `finish_step` rates, replaces and records. Between
them the host generates, verifies, solves and grades, and trains on what `training.py` credits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from azr_population.config.schema import EvolutionConfig, MatchmakingConfig, PopulationConfig
from azr_population.domains.buffer import TaskBuffer
from azr_population.errors import UserError
from azr_population.method import record
from azr_population.method.clock import PhaseClock
from azr_population.method.matchmaking import Match, Matchmaker
from azr_population.method.members import Member, RatingSystem, Role, Roster
from azr_population.method.rewards import count_copies, reward_rows
from azr_population.method.rows import Practice, Row
from azr_population.method.shares import Dealer
from azr_population.method.transcript import Transcript
from azr_population.method.turnover import MakeChild, Turnover, rate_matches
from azr_population.runs.directory import RunDirectory
from azr_population.runs.streams import Streams


@dataclass(frozen=True)
class StepRecords:
    """What a step adds to the records of a run, by their names."""

    metrics: dict[str, Any]
    matches: list[dict[str, Any]]
    lineage: list[dict[str, Any]]
    tasks: list[dict[str, Any]]
    notes: list[str]
    """Lines for the person watching; they are not written down."""
    exams: list[dict[str, Any]] = field(default_factory=list)
    completions: list[dict[str, Any]] = field(default_factory=list)

    def append_to(self, directory: RunDirectory) -> None:
        """Writes the records; a step whose metrics are there has all of them."""
        directory.append("tasks", self.tasks)
        directory.append("matches", self.matches)
        directory.append("lineage", self.lineage)
        directory.append("exams", self.exams)
        if self.completions:  # no empty file where none are wanted
            directory.append("completions", self.completions)
        directory.append("metrics", [self.metrics])


def matchmaker_of(settings: MatchmakingConfig) -> Matchmaker:
    """Ratings and matches as a run's `matchmaking` group wants them; raises UserError."""
    ratings = RatingSystem(
        tau=settings.tau,
        draw_probability=settings.draw_probability,
        forfeit=settings.forfeit,
    )
    return Matchmaker(ratings, settings.weighting, settings.options)


class Population:
    """The members of a run and all that is known of them; `step` is the last one begun."""

    def __init__(
        self,
        config: PopulationConfig,
        matchmaking: MatchmakingConfig,
        evolution: EvolutionConfig,
        seed: int,
        buffer_size: int,
    ) -> None:
        self.config = config
        self.streams = Streams(seed)
        self.matchmaker = matchmaker_of(matchmaking)
        self.ratings = self.matchmaker.ratings
        self.roster = Roster.make(config.teachers, config.students, self.ratings.initial)
        self.turnover = Turnover(evolution, self.streams, self.ratings.initial)
        self.buffer = TaskBuffer(buffer_size)
        """Valid tasks of earlier steps: one that comes again is a copy."""
        self.transcript: Transcript | None = None
        """What is kept of the members' own words; set by the host, which has the tokenizer."""
        self.step = 0
        self.matches: list[Match] = []
        self._dealer = Dealer([])

    def begin_step(self, step: int) -> list[Match]:
        """Draws the matches of a step."""
        self.step = step
        self.matches = self.matchmaker.draw(
            self.roster.teachers, self.roster.students, self.streams.numpy("match", step)
        )
        self._dealer = Dealer(self.matches)
        return self.matches

    def deal(self, teachers: Sequence[int]) -> list[Match]:
        """The match of every row of proposals, by the slots of its teachers; see `Dealer.deal`."""
        return self._dealer.deal(teachers)

    def learning_rates(self) -> dict[int, float]:
        """AdamW's step of every member, by slot."""
        rates = {
            Role.TEACHER: self.config.teacher_lr,
            Role.STUDENT: self.config.student_lr,
            Role.AGENT: self.config.agent_lr,
        }
        return {member.slot: rates[member.role] for member in self.roster}

    def best_student(self) -> Member:
        """The student with the best conservative rating."""
        return max(self.roster.students, key=lambda member: member.rating.conservative)

    def reward(self, rows: Sequence[Row]) -> None:
        """Counts copies and sets rewards; `rows` are all of the step, or all of one task type."""
        count_copies(rows, self.buffer)
        reward_rows(rows, self.config)

    def finish_step(
        self,
        rows: Sequence[Row],
        updates: Mapping[int, Mapping[str, float]],
        make_child: MakeChild,
        practice: Sequence[Practice] = (),
    ) -> StepRecords:
        """Rates the matches, replaces members at the interval, and tells what happened.

        Args:
            rows: all proposals of the step, rewarded.
            updates: what the engine says about each member's update, by slot.
            make_child: puts a child in the place of a member.
            practice: attempts outside the matches.
        """
        rows = sorted(rows, key=lambda row: (row.match.teacher.slot, row.match.student.slot))
        written = self._kept(rows, practice)
        clock = PhaseClock()
        with clock("rate"):
            matches = rate_matches(self.step, self.matches, rows, self.matchmaker)
            self.roster.anchor(self.ratings.initial.mu)
        with clock("evolve"):
            self.turnover.remember(
                {member.name: record.mean_reward(member, rows) for member in self.roster}
            )
            births = self.turnover.replace(self.step, self.roster, make_child)
        metrics = record.step_record(self.step, self.roster, rows, practice, updates)
        metrics |= self.turnover.operators(self.step)
        metrics["phases"] = clock.phases
        for row in rows:
            if row.task is not None:
                self.buffer.add(row.task)
        tasks = record.task_records(self.step, rows)
        notes = record.nothing_valid(rows)
        return StepRecords(metrics, matches, births, tasks, notes, completions=written)

    def _kept(self, rows: Sequence[Row], practice: Sequence[Practice]) -> list[dict[str, Any]]:
        if self.transcript is None:
            return []
        generator = self.streams.numpy("completions", self.step)
        return self.transcript.of_step(self.step, self.roster, rows, practice, generator)

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {
            "step": self.step,
            "roster": self.roster.to_json(),
            "buffer": self.buffer.to_list(),
            **self.turnover.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`.

        Raises:
            UserError: the state is of another population.
        """
        roster = Roster.from_json(state["roster"])
        theirs, ours = ([member.name for member in members] for members in (roster, self.roster))
        if theirs != ours:
            raise UserError(
                f"the checkpoint holds {', '.join(theirs)}, and population={self.config.name} has "
                f"{', '.join(ours)}; resume with the same population, or start a run of its own"
            )
        self.step = state["step"]
        self.roster = roster
        # Checkpoints of runs inside AZR had no buffer at first.
        self.buffer.load_list(state.get("buffer", []))
        self.turnover.load_state(state)
