"""A local run's stored state: checkpoints, PEFT folders, snapshots, and forks.

A fork goes on from a checkpoint of another run, with settings of its own. Two forks of one
checkpoint differ by what is set differently and by nothing before it, so that their difference
needs far fewer seeds than that of two whole runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from azr_population.config.effects import differences, replay_settings
from azr_population.config.load import config_from_file
from azr_population.config.schema import Config, RunConfig
from azr_population.domains.known import find_domain
from azr_population.domains.task import ParsedProposal
from azr_population.errors import UserError
from azr_population.hosts.local.run_engine import base_of
from azr_population.method.held_out_eval import HeldOutEval, store_self_proposed
from azr_population.method.member_folders import export_members, keep_best, write_snapshot
from azr_population.method.phases import seed_tasks
from azr_population.method.record import StepRecords
from azr_population.method.step import SelfPlay
from azr_population.pages.console.view import View
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from azr_population.weights.adapter import LARGEST

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


@dataclass(frozen=True)
class Beginning:
    """What a run starts with."""

    seeds: Sequence[ParsedProposal]
    fork: Fork | None


def beginning_of(config: Config, base: str) -> Beginning:
    """Seed tasks and the run to start from, if there are any; `base` is the base's hash."""
    file = config.task.seed_file
    seeds = find_domain(config.task.domain).read_seeds(file) if file else []
    return Beginning(seeds, open_fork(config, base) if config.run.init_from else None)


def start(
    play: SelfPlay,
    directory: RunDirectory,
    beginning: Beginning,
    self_proposed: HeldOutEval | None,
    view: View,
) -> None:
    """The state before the first step: that of the base, with the seed tasks that are valid, or of
    the run it is forked from."""
    if self_proposed:
        store_self_proposed(self_proposed, directory.path)
    if fork := beginning.fork:
        view.on_note(fork.line)
        _put_in_place(play, fork.checkpoint, fork.run)
        directory.copy_records(fork.run, fork.checkpoint.step)
    else:
        generator, context = play.population.streams.numpy("seed_tasks"), play.context
        play.population.load_founders(context.engine.read, context.engine.write)
        for task in seed_tasks(beginning.seeds, context.domain, context.referee, play.config.task):
            play.population.buffer.add(task, generator)
    save(play, directory)
    take_snapshot(play, directory)


def save(play: SelfPlay, directory: RunDirectory) -> None:
    """The checkpoint first, because it is what a resume reads; then the members' folders."""
    save_checkpoint(
        directory.checkpoints,
        play.step,
        _state_of_members(play),
        {**play.population.state(), "config": replay_settings(play.config)},
        play.config.run.save_total_limit,
        play.config.run.permanent_checkpoint_every,
    )
    export(play, directory)


def _state_of_members(play: SelfPlay) -> dict[str, Any]:
    """The engine's state but for the slot of past opponents, who come anew in every step."""
    slots = {member.slot for member in play.population.roster}
    return {
        part: {slot: value for slot, value in by_slot.items() if slot in slots}
        for part, by_slot in play.context.engine.state_dict().items()
    }


def export(play: SelfPlay, directory: RunDirectory) -> None:
    """The members as PEFT folders."""
    export_members(play.population, play.context.engine.read, directory, base_of(play.config.base))


def keep_best_member(play: SelfPlay, directory: RunDirectory, records: StepRecords) -> None:
    """After an eval: `members/best`."""
    students = play.population.roster.students if records.evals else ()
    keys = {student.name: f"{student.name}/eval/greedy" for student in students}
    scores = {name: records.metrics[key] for name, key in keys.items() if key in records.metrics}
    if scores:
        before = [line.get("eval/best") for line in directory.metrics() if line["step"] < play.step]
        best_before = max((score for score in before if score is not None), default=None)
        population, read = play.population, play.context.engine.read
        base = base_of(play.config.base)
        keep_best(scores, best_before, population, read, directory, base)


def take_snapshot(play: SelfPlay, directory: RunDirectory) -> None:
    """Stores the members if this step is one of `run.snapshot_every`'s or `run.snapshot_steps`."""
    if play.step in _snapshot_steps(play.config.run):
        write_snapshot(
            play.population, play.context.engine.read, directory, base_of(play.config.base)
        )


def _snapshot_steps(run: RunConfig) -> set[int]:
    every = run.snapshot_every
    regular = range(every, run.steps + 1, every) if every else ()
    return {*regular, *(step for step in run.snapshot_steps if step <= run.steps)}


def load(play: SelfPlay, checkpoint: Checkpoint, directory: RunDirectory) -> None:
    """Puts the state of a checkpoint in place, which may come from anybody.

    Raises:
        UserError: it lacks something, or is of another configuration than config.yaml.
    """
    before = checkpoint.plain.get("config", {})
    for key, value in replay_settings(play.config).items():
        if key in before and before[key] != value:
            raise UserError(
                f"{directory.path}/config.yaml has {key}={value}, but its checkpoint of step "
                f"{checkpoint.step} was made with {key}={before[key]}; restore that, or start a "
                "new run"
            )
    _put_in_place(play, checkpoint, directory)


def _put_in_place(play: SelfPlay, checkpoint: Checkpoint, directory: RunDirectory) -> None:
    where = f"{directory.checkpoints}/step_{checkpoint.step}"
    if named := _unsound(checkpoint.tensors):
        raise UserError(f"{where} holds {named}; continue from an earlier checkpoint")
    try:
        play.context.engine.load_state_dict(checkpoint.tensors)
        play.population.load_state(checkpoint.plain)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise UserError(
            f"{where} is damaged ({error!r:.200}); move it away to continue from the one before"
        ) from error


def _unsound(node: Any, path: str = "") -> str | None:
    """The first value in nested tensors that no training leaves, and where."""
    if isinstance(node, torch.Tensor):
        if not torch.isfinite(node).all():
            return f"a value that is not finite (NaN or Inf) in {path}"
        largest = float(node.abs().max()) if node.numel() and path.startswith("adapters") else 0.0
        return f"{largest:.3g} in {path}" if largest > LARGEST else None
    parts: Iterable[tuple[Any, Any]] = node.items() if isinstance(node, Mapping) else ()
    if isinstance(node, (list, tuple)):
        parts = enumerate(node)
    unsound = (_unsound(value, f"{path}.{key}".lstrip(".")) for key, value in parts)
    return next(filter(None, unsound), None)


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
            f"run.steps={config.run.steps} leaves no steps after step {step} of "
            "run.init_from; give more",
            key="run.steps",
        )
    changed = differences(parent, config)
    for key, theirs, ours in changed:
        if key.startswith(_SHAPES):
            raise UserError(
                f"{key}={ours} does not fit run.init_from={config.run.init_from}, which has "
                f"{key}={theirs}",
                key=key,
            )
    run.check_base(
        base, "; set base.path to the right one", f"run.init_from={config.run.init_from}"
    )
    return Fork(run, checkpoint, _line(config, parent, changed))


def _line(config: Config, parent: Config, changed: list[tuple[str, object, object]]) -> str:
    settings = [
        f"{key}={ours} ({theirs} there)"
        for key, theirs, ours in changed
        if key not in ("run.init_from", "seed")
    ]
    draws = (
        f"seed {config.seed}: the same draws from there on"
        if config.seed == parent.seed
        else f"seed {config.seed}, not {parent.seed}: other draws from there on"
    )
    what = ", ".join(settings) or "no setting differs"
    return f"forked from {config.run.init_from}; {draws}; {what}"
