"""What a local run keeps of its members, and how it takes that up again: checkpoints, PEFT folders,
snapshots, and the state that a fork begins with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from azr_population.config.effects import replay_settings
from azr_population.config.schema import RunConfig
from azr_population.domains.task import ParsedProposal
from azr_population.errors import UserError
from azr_population.hosts.local.fork import Fork
from azr_population.hosts.local.run_engine import base_of
from azr_population.method.export import export_members, keep_best, write_snapshot
from azr_population.method.phases import seed_tasks
from azr_population.method.record import StepRecords
from azr_population.method.self_proposed_eval import write as write_self_proposed
from azr_population.method.step import SelfPlay
from azr_population.pages.console.view import View
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import Checkpoint, save_checkpoint
from azr_population.weights.adapter import LARGEST


def start(
    play: SelfPlay,
    directory: RunDirectory,
    seeds: Sequence[ParsedProposal],
    origin: Fork | None,
    view: View,
) -> None:
    """The state before the first step: that of the base, with the seed tasks that are valid, or of
    the run it is forked from."""
    if play.self_proposed_eval:
        write_self_proposed(play.self_proposed_eval, directory.path)
    if origin:
        view.on_note(origin.line)
        _put_in_place(play, origin.checkpoint, origin.run)
        directory.copy_records(origin.run, origin.checkpoint.step)
    else:
        generator, tools = play.population.streams.numpy("seed_tasks"), play.tools
        play.population.load_founders(tools.engine.read, tools.engine.write)
        for task in seed_tasks(seeds, tools.domain, tools.referee, play.config.task):
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
        for part, by_slot in play.tools.engine.state_dict().items()
    }


def export(play: SelfPlay, directory: RunDirectory) -> None:
    """The members as PEFT folders."""
    export_members(play.population, play.tools.engine.read, directory, base_of(play.config.base))


def keep_best_member(play: SelfPlay, directory: RunDirectory, records: StepRecords) -> None:
    """After an eval: `members/best`."""
    students = play.population.roster.students if records.evals else ()
    keys = {student.name: f"{student.name}/eval/greedy" for student in students}
    scores = {name: records.metrics[key] for name, key in keys.items() if key in records.metrics}
    if scores:
        before = [line.get("eval/best") for line in directory.metrics() if line["step"] < play.step]
        best_before = max((score for score in before if score is not None), default=None)
        population, read = play.population, play.tools.engine.read
        base = base_of(play.config.base)
        keep_best(scores, best_before, population, read, directory, base)


def take_snapshot(play: SelfPlay, directory: RunDirectory) -> None:
    """Stores the members if this step is one of `run.snapshot_every`'s or `run.snapshot_steps`."""
    if play.step in _snapshot_steps(play.config.run):
        write_snapshot(
            play.population, play.tools.engine.read, directory, base_of(play.config.base)
        )


def size_of_snapshots(play: SelfPlay) -> str | None:
    """What the snapshots that are to come will take; None where there are none."""
    run, roster = play.config.run, play.population.roster
    count = sum(step > play.step for step in _snapshot_steps(run))
    if not count:
        return None
    pairs = play.tools.engine.read(0).factors.values()
    size = sum(pair.A.nbytes + pair.B.nbytes for pair in pairs) * len(roster) * count
    return (
        f"run.snapshot_every={run.snapshot_every}: {count} snapshots of {len(roster)} members to "
        f"come, {size / 1e6:.1f} MB in {run.dir}/snapshots"
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
        play.tools.engine.load_state_dict(checkpoint.tensors)
        play.population.load_state(checkpoint.plain)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise UserError(
            f"{where} is damaged ({error!r:.200}); move it away to go on from the one before"
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
