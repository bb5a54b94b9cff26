"""Past opponents: an earlier student attempts a share of each teacher's tasks, and its attempts set
their reward.

Fictitious self-play (Brown 1951; Heinrich, Lanctot and Silver 2015) plays against the average of
all earlier opponents, not only the last one, so a task that only defeats the current student pays
less. The earlier students come from the run's snapshots; each step draws one uniformly. They are
frozen, not rated and not trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from azr_population.engines.text import TextEngine
from azr_population.method.callbacks import Callback
from azr_population.method.matchmaking import Match
from azr_population.method.members import Member, Role
from azr_population.method.population import Population
from azr_population.method.proposals import Proposal, matches_of
from azr_population.method.record import StepRecords, flatten
from azr_population.runs.directory import member_folders, steps
from azr_population.runs.records import mean, role_of
from azr_population.weights.peft_folder import load_adapter


@dataclass
class PastOpponents(Callback):
    """Lets one stored student of the run play in each step."""

    snapshots: Path
    """The run's folder of `step_<n>` folders."""
    slot: int
    """The engine's slot for it, which belongs to no member."""
    share: float
    """The share of each match's tasks that it attempts, in (0, 1)."""
    engine: TextEngine
    _playing: str | None = None

    def proposed(self, population: Population, rows: list[Proposal]) -> None:
        """Loads a student of an earlier step into the engine and assigns it a share of each match's
        rows; nothing happens before the first snapshot."""
        stored = [
            (step, folder)
            for step, place in steps(self.snapshots)
            if step < population.step
            for folder in member_folders(place)
            if role_of(folder.name) == Role.STUDENT
        ]
        self._playing = None
        if not stored:
            return
        generator = population.streams.numpy("past", population.step)
        step, folder = stored[int(generator.integers(len(stored)))]
        self.engine.write(self.slot, load_adapter(folder))
        self._playing = f"{folder.name}@{step}"
        past = Member(self._playing, Role.STUDENT, self.slot)
        for match in matches_of(rows):
            match_rows = [row for row in rows if row.match is match]
            count = round(self.share * len(match_rows))
            for i in generator.permutation(len(match_rows))[:count]:
                match_rows[i].match = Match(match.teacher, past)

    def recorded(
        self, population: Population, rows: Sequence[Proposal], records: StepRecords
    ) -> None:
        """Adds its name (`student_1@25`) and its solve rate to the metrics."""
        if self._playing:
            played = [row for row in rows if row.student.name == self._playing and row.task]
            figures = {"tasks": len(played), "solve_rate": mean(row.solve_rate for row in played)}
            records.metrics |= {"past/student": self._playing, **flatten("past", figures)}
