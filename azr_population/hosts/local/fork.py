"""Forks: a run that goes on from a checkpoint of another one, with settings of its own.

Two forks of one checkpoint differ by what is set differently and by nothing before it, so that
their difference needs far fewer seeds than that of two whole runs.
"""

from dataclasses import dataclass
from pathlib import Path

from azr_population.config.effects import differences
from azr_population.config.load import config_from_file
from azr_population.config.schema import Config
from azr_population.errors import UserError
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import Checkpoint, load_checkpoint

_SHAPES = (
    "population.teachers",
    "population.students",
    "base.lora",
    "base.dtype",
    "base.prompt_format",
)
"""Keys, or beginnings of keys, in which a fork cannot differ."""


@dataclass(frozen=True)
class Fork:
    """Where a run begins."""

    run: RunDirectory
    checkpoint: Checkpoint
    line: str
    """For people: from where, and what differs."""

    @property
    def record(self) -> dict[str, object]:
        """For `environment.json`."""
        return {"run": str(self.run.path), "step": self.checkpoint.step}


def open_fork(config: Config, base: str) -> Fork:
    """The checkpoint that `run.init_from=RUN@STEP` names; `base` is the hash of the run's base.
    Raises UserError: it is missing, or its members do not fit this configuration."""
    path, at, step = str(config.run.init_from).rpartition("@")
    if not at or not step.isdecimal():
        raise UserError(
            f"run.init_from={config.run.init_from} names no step; write RUN@STEP, as runs/a@50",
            key="run.init_from",
        )
    run = RunDirectory(Path(path))
    run.refuse_results_only()
    parent = config_from_file(run.config_file)
    checkpoint = load_checkpoint(run.checkpoints, int(step))
    if config.run.steps <= checkpoint.step:
        raise UserError(
            f"run.steps={config.run.steps} leaves nothing to play after step {step} of "
            "run.init_from; give more",
            key="run.steps",
        )
    changed = differences(parent, config)
    for key, theirs, wanted in changed:
        if key.startswith(_SHAPES):
            raise UserError(
                f"{key}={wanted} does not fit run.init_from={config.run.init_from}, which has "
                f"{key}={theirs}",
                key=key,
            )
    run.check_base(
        base, "; set base.path to the right one", f"run.init_from={config.run.init_from}"
    )
    return Fork(run, checkpoint, _line(config, parent, changed))


def _line(config: Config, parent: Config, changed: list[tuple[str, object, object]]) -> str:
    settings = [
        f"{key}={wanted} ({theirs} there)"
        for key, theirs, wanted in changed
        if key not in ("run.init_from", "seed")
    ]
    draws = (
        f"seed {config.seed}: the same draws from there on"
        if config.seed == parent.seed
        else f"seed {config.seed}, not {parent.seed}: other draws from there on"
    )
    what = ", ".join(settings) or "no setting differs"
    return f"forked from {config.run.init_from}; {draws}; {what}"
