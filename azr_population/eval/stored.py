"""The members that runs have stored, and an engine that takes one after the other."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azr_population.config.load import config_from_file
from azr_population.engines.base_model import fingerprint
from azr_population.engines.text import TextEngine
from azr_population.errors import UserError
from azr_population.hosts.local.local_plan import resolve_stored
from azr_population.hosts.local.run_engine import open_engine
from azr_population.method.members import Member, Role
from azr_population.method.phases import StepContext
from azr_population.method.run_plan import RunPlan
from azr_population.runs import RunDirectory
from azr_population.runs.directory import member_folders, steps
from azr_population.runs.records import metrics_of_members, role_of
from azr_population.runs.run_data import RunData
from azr_population.weights.peft_folder import load_adapter


@dataclass(frozen=True)
class StoredMember:
    """One member as it was at a step of its run."""

    run: str
    """The run's label: its folder's name."""
    step: int
    name: str
    folder: Path
    """Its PEFT folder."""
    metrics: Mapping[str, Any]
    """As recorded at that step; the single agent has no rating."""

    @property
    def solves(self) -> bool:
        """Whether it is a student, or the single agent."""
        return role_of(self.name) != "teacher"

    @property
    def proposes(self) -> bool:
        """Whether it is a teacher, or the single agent."""
        return role_of(self.name) != "student"

    @property
    def label(self) -> str:
        """`run/student_0@75`."""
        return f"{self.run}/{self.name}@{self.step}"

    def load(self, engine: TextEngine) -> Member:
        """Puts the member into the engine's only slot."""
        engine.write(0, load_adapter(self.folder))
        return Member(self.name, Role(role_of(self.name)), 0)


MOST = 8
"""Snapshots that are taken of a run by default."""


def stored_members(run: RunDirectory, every: int | None = 0) -> list[StoredMember]:
    """The members at the run's last step, and before them those of its snapshots at multiples of
    `every` (0: none; None: those that there are, `MOST` evenly spread ones of more), oldest first.
    Raises UserError: there are none."""
    run.refuse_results_only()
    stored = steps(run.snapshots)
    if every is None:
        apart = max(1.0, (len(stored) - 1) / (MOST - 1))
        chosen = {round(apart * place) for place in range(MOST)}
        places = {step: path for place, (step, path) in enumerate(stored) if place in chosen}
    else:
        places = {step: path for step, path in stored if every and step % every == 0}
    if every and not places:
        have = ", ".join(str(step) for step, _ in stored) or "none; they need run.snapshot_every=N"
        raise UserError(f"{run.path} has no snapshot at a multiple of {every}; of steps: {have}")
    recorded = RunData(run.path)
    places.setdefault(recorded.last, run.members)
    lines = {line["step"]: line for line in recorded.lines}
    label = run.path.resolve().name
    members = [
        StoredMember(label, step, folder.name, folder, recorded.get(folder.name, {}))
        for step, place in sorted(places.items())
        for recorded in [metrics_of_members(lines.get(step, {}))]
        for folder in member_folders(place)
    ]
    if not members:
        raise UserError(f"{run.path} has no members in {run.members}; resume it to save them")
    return members


@contextmanager
def open_context(plan: RunPlan, run: RunDirectory) -> Iterator[StepContext]:
    """Domain, format, referee, and an engine with one slot, the bare base in it, on the base that
    the run was played on. Raises UserError: that base is not there, or is another one."""
    run.check_base(fingerprint(plan.engine.base))
    with StepContext.open(plan, open_engine(plan)) as context:
        yield context


def stored_plan(run: RunDirectory, overrides: Sequence[str] = ()) -> RunPlan:
    """The run's plan with some of its values replaced, and one member; raises UserError."""
    run.refuse_results_only()
    config = config_from_file(run.config_file, overrides)
    alone = config.population.model_copy(update={"teachers": 0, "students": 0})
    return resolve_stored(config.model_copy(update={"population": alone}))
