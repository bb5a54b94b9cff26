"""A local run's stored state: checkpoints, PEFT folders, snapshots."""

from __future__ import annotations

from azr_population.config.effects import replay_settings
from azr_population.errors import UserError
from azr_population.method.member_folders import MemberFolders
from azr_population.method.record import StepRecords
from azr_population.method.step import SelfPlay
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import Checkpoint, restoring, save_checkpoint

CHECKPOINTS_KEPT = 2
"""Number of the newest checkpoints that are kept."""


class RunState:
    """Writes the state of a run into its directory, and puts stored state in place."""

    def __init__(self, play: SelfPlay, directory: RunDirectory, base: str) -> None:
        self.play = play
        self.directory = directory
        self.folders = MemberFolders(play.population, play.context.engine.read, directory, base)

    def begin(self) -> None:
        """Sets the state before the first step: the founders."""
        engine = self.play.context.engine
        self.play.population.load_founders(engine.read, engine.write)
        self.save()

    def save(self) -> None:
        """The checkpoint first, because it is what a resume reads; then the members' folders."""
        play = self.play
        save_checkpoint(
            self.directory.checkpoints,
            play.step,
            play.context.engine.state_dict(),
            {**play.population.state(), "config": replay_settings(play.config)},
            CHECKPOINTS_KEPT,
        )
        self.folders.export()

    def take_snapshot(self) -> None:
        """Stores the members if this step is one of `run.snapshot_every`'s."""
        every = self.play.config.run.snapshot_every
        if every and self.play.step % every == 0:
            self.folders.write_snapshot()

    def keep_best_member(self, records: StepRecords) -> None:
        """After an eval: `members/best`."""
        students = self.play.population.roster.students if records.evals else ()
        keys = {student.name: f"{student.name}/eval/greedy" for student in students}
        metrics = records.metrics
        if scores := {name: metrics[key] for name, key in keys.items() if key in metrics}:
            self.folders.keep_best(scores)

    def load(self, checkpoint: Checkpoint) -> None:
        """Puts the state of a checkpoint in place, which may come from anybody. Raises UserError:
        it lacks something, or is of another configuration than config.yaml."""
        before = checkpoint.plain.get("config") or {}
        if not isinstance(before, dict):
            raise UserError(
                f"{self.directory.checkpoints}/step_{checkpoint.step}: config is damaged"
            )
        for key, value in replay_settings(self.play.config).items():
            if key in before and before[key] != value:
                raise UserError(
                    f"{self.directory.path}/config.yaml has {key}={value}, but its checkpoint of "
                    f"step {checkpoint.step} was made with {key}={before[key]}; restore that, or "
                    "start a new run"
                )
        where = f"{self.directory.checkpoints}/step_{checkpoint.step}"
        with restoring(where, checkpoint.tensors, checkpoint.plain):
            self.play.context.engine.load_state_dict(checkpoint.tensors)
            self.play.population.load_state(checkpoint.plain)
