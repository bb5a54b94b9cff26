"""Forks: a run that continues from a checkpoint of another run, with settings of its own.

Two forks of one checkpoint share everything up to it and, with one seed, the draws after it. So
their difference needs far fewer seeds than that of two whole runs.
"""

from __future__ import annotations

from typing import NamedTuple

from azr_population.config.effects import differences
from azr_population.config.load import config_from_file
from azr_population.config.schema import Config
from azr_population.errors import UserError
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import Checkpoint, load_checkpoint

_FIXED = (
    "population.teachers",
    "population.students",
    "base.lora",
    "base.dtype",
    "base.prompt_format",
    "task.domain",
    "task.buffer_size",
)
"""Keys, or beginnings of keys, in which a fork cannot differ."""


class Parent(NamedTuple):
    """The run that a fork continues from, its checkpoint, the keys that differ, and a line about
    them."""

    directory: RunDirectory
    checkpoint: Checkpoint
    changed: frozenset[str]
    note: str

    def record(self) -> dict[str, dict[str, str | int]]:
        """For `environment.json`."""
        return {"fork": {"run": str(self.directory.path), "step": self.checkpoint.step}}


def parent_of(config: Config, base: str) -> Parent | None:
    """What `run.init_from` names; None where it is not set. `base` is the hash of the run's base.
    Raises UserError: there is no such run or checkpoint, or it does not fit the configuration."""
    typed = config.run.init_from
    if typed is None:
        return None
    path, _, step = typed.rpartition("@")
    if not path or not step.isdecimal():
        raise UserError(
            f"run.init_from={typed} names no step; write RUN@STEP, as runs/a@50",
            key="run.init_from",
        )
    parent = RunDirectory(path)
    parent.refuse_results_only()
    changed = differences(config_from_file(parent.config_file), config)
    checkpoint = load_checkpoint(parent.checkpoints, int(step))
    if config.run.steps <= checkpoint.step:
        raise UserError(
            f"run.steps={config.run.steps} leaves no steps after step {step} of run.init_from; "
            "give more",
            key="run.steps",
        )
    for key, theirs, ours in changed:
        if key.startswith(_FIXED):
            raise UserError(
                f"{key}={ours} does not fit run.init_from={typed}, which has {key}={theirs}",
                key=key,
            )
    parent.check_base(base, f"; run.init_from={typed} needs the first: set base.path to it")
    settings = [
        f"{key}={ours} ({theirs} there)" for key, theirs, ours in changed if key != "run.init_from"
    ]
    note = f"forked from {typed}; {', '.join(settings) or 'no setting differs'}"
    return Parent(parent, checkpoint, frozenset(key for key, _, _ in changed), note)
