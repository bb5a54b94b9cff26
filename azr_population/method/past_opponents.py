"""Past opponents: an earlier student attempts a share of each teacher's tasks, and its attempts set
their reward.

Fictitious self-play (Brown 1951; Heinrich, Lanctot and Silver 2015) plays against the average of
all earlier opponents, not only the last one, so a task that only defeats the current student pays
less. The earlier students come from the run's snapshots; each step draws one uniformly. They are
frozen, not rated and not trained.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from azr_population.engines.text import TextEngine
from azr_population.method.callbacks import Callback
from azr_population.method.matchmaking import Match
from azr_population.method.members import Member, Role
from azr_population.method.population import Population
from azr_population.method.proposals import Proposal, matches_of
from azr_population.method.record import StepRecords, flatten
from azr_population.runs.directory import steps
from azr_population.runs.records import mean
from azr_population.weights.peft_folder import load_adapter


class PastOpponents(Callback):
    """Lets one stored student of the run play in each step.

    Args:
        snapshots: the run's folder of `step_<n>` folders.
        slot: the engine's slot for it, which belongs to no member.
        share: the share of each match's tasks that it attempts, in (0, 1).
    """

    def __init__(self, snapshots: Path, slot: int, share: float, engine: TextEngine) -> None:
        self._snapshots = snapshots
        self._slot = slot
        self._share = share
        self._engine = engine
        self._playing: str | None = None

    def proposed(self, population: Population, rows: list[Proposal]) -> None:
        """Assigns a share of each match's rows to one student of an earlier step."""
        generator = population.streams.numpy("past", population.step)
        self._playing = self.assign_past_opponent(rows, population.step, generator)

    def recorded(
        self, population: Population, rows: Sequence[Proposal], records: StepRecords
    ) -> None:
        """Adds its solve rate to the metrics."""
        if self._playing:
            played = [row for row in rows if row.match.student.name == self._playing and row.task]
            figures = {"tasks": len(played), "solve_rate": mean(row.solve_rate for row in played)}
            records.metrics |= {"past/student": self._playing, **flatten("past", figures)}

    def assign_past_opponent(
        self, rows: Sequence[Proposal], step: int, generator: np.random.Generator
    ) -> str | None:
        """Loads a student of an earlier step into the engine and assigns its rows; returns its name
        (`student_1@25`), or None before the first snapshot."""
        stored = [
            (then, folder)
            for then, place in steps(self._snapshots)
            if then < step
            for folder in sorted(place.glob(f"{Role.STUDENT}_*"))
        ]
        if not stored:
            return None
        then, folder = stored[int(generator.integers(len(stored)))]
        self._engine.write(self._slot, load_adapter(folder))
        past = Member(f"{folder.name}@{then}", Role.STUDENT, self._slot)
        for match in matches_of(rows):
            match_rows = [row for row in rows if row.match is match]
            count = round(self._share * len(match_rows))
            for i in generator.permutation(len(match_rows))[:count]:
                match_rows[i].match = Match(match.teacher, past)
        return past.name
