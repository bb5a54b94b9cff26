"""A local run from its configuration: put together, played, recorded, resumed.

Not covered: runs inside AZR; they use the same pieces under veRL (the `azr` room).
"""

from __future__ import annotations

import platform
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from azr_population.adapters.adapter import LoraSpec
from azr_population.adapters.peft_folder import save_adapter
from azr_population.conf.differences import FREE, differences
from azr_population.conf.load import config_from_file, to_yaml
from azr_population.conf.schema import Config
from azr_population.engines.base_model import fingerprint
from azr_population.engines.torch_engine import TorchEngine
from azr_population.errors import UserError
from azr_population.loggers import check_packages, open_loggers, step_figures
from azr_population.nano import nano_base_path
from azr_population.referee import Referee, RefereeSettings
from azr_population.reports.console import View
from azr_population.reports.page import write_report
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import (
    load_latest,
    members_digest,
    save_checkpoint,
    steps,
)
from azr_population.runs.directory import replacing_folder, write_atomically
from azr_population.selfplay.exam import Exam
from azr_population.selfplay.loop import SelfPlay
from azr_population.selfplay.phases import seed_tasks
from azr_population.selfplay.streams import Streams
from azr_population.tasks.formats import FORMATS
from azr_population.tasks.seed_file import read_seed_file
from azr_population.tasks.task import Task
from azr_population.versions import commit, installed


def train(config: Config, view: View, typed: Sequence[str] = ()) -> int:
    """Starts the run that `config` describes, or goes on with it when `run.resume` is set.

    `typed` are the overrides that made `config`: a resumed run takes only those under `run.`.

    Returns:
        The exit code: 0, or 128 + the signal that stopped the run after a finished step.

    Raises:
        UserError: anything about the configuration or the folder that the user can mend.
    """
    directory = RunDirectory(config.run.dir)
    if config.run.resume and (directory.path / "config.yaml").exists():
        stored = config_from_file(directory.path / "config.yaml")
        refuse_changes(stored, config)
        return resume(directory.path, [text for text in typed if text.startswith(FREE)], view)
    check_packages(config.logger.names)
    directory.refuse_unless_new()
    config.engine.threads = config.engine.threads or torch.get_num_threads()
    config.run.resume = False
    proposals = read_seed_file(config.task.seed_file) if config.task.seed_file else []
    with _selfplay(config) as play:
        seeds = seed_tasks(proposals, play.referee, config.task)
        base = fingerprint(config.base.path or nano_base_path())
        directory.create(to_yaml(config), {**environment(), "base": base})
        with directory.locked():
            _start(play, directory, seeds)
            return _play(play, directory, view)


def resume(path: str | Path, overrides: Sequence[str], view: View) -> int:
    """Goes on with the run in `path` from its newest sound checkpoint; returns as `train` does.

    `overrides` may change what does not rewrite the past: `run.` and `exam.`, e.g. `run.steps=40`.
    """
    directory = RunDirectory(path)
    directory.refuse_curves()
    stored = config_from_file(directory.path / "config.yaml")
    config = config_from_file(directory.path / "config.yaml", overrides)
    refuse_changes(stored, config)
    check_packages(config.logger.names)
    config.run.dir = str(path)
    proposals = read_seed_file(config.task.seed_file) if config.task.seed_file else []
    with directory.locked(), _selfplay(config) as play:
        if steps(directory.checkpoints):
            checkpoint = load_latest(directory.checkpoints)
            for damaged in checkpoint.skipped:
                view.on_note(
                    f"checkpoint {damaged} is damaged; going on from step {checkpoint.step}"
                )
            play.engine.load_state_dict(checkpoint.tensors)
            play.load_state(checkpoint.plain)
            # A crash may have come between the checkpoint and the members' folders.
            _export_members(play, directory)
        else:
            _start(play, directory, seed_tasks(proposals, play.referee, config.task))
        directory.truncate(play.step)
        # What a later resume goes by, such as more steps.
        write_atomically(directory.path / "config.yaml", to_yaml(config))
        return _play(play, directory, view)


def refuse_changes(stored: Config, wanted: Config) -> None:
    """Raises `UserError` when `wanted` differs from a run's own configuration in what it plays."""
    for key, one, other in differences(stored, wanted):
        raise UserError(
            f"{key}={other} differs from the run's own {key}={one}; "
            "leave it out, or start a new run in another run.dir"
        )


@contextmanager
def _selfplay(config: Config) -> Iterator[SelfPlay]:
    """Loads the base, starts the referee and puts the population on it."""
    torch.set_num_threads(config.engine.threads or torch.get_num_threads())
    settings = RefereeSettings(
        workers=config.referee.workers,
        deadline=config.referee.deadline,
        cpu_seconds=config.referee.cpu_seconds,
        share=config.referee.share,
        memory_mb=config.referee.memory_mb,
        accept_unconfined=config.referee.accept_unconfined,
    )
    format = FORMATS[config.base.format]()
    with Referee(settings) as referee:
        engine = _engine(config)
        yield SelfPlay(config, engine, referee, format, _exam(config))


def _engine(config: Config) -> TorchEngine:
    lora = config.base.lora
    members = config.population.teachers + config.population.students
    return TorchEngine.from_folder(
        config.base.path or nano_base_path(),
        LoraSpec(lora.rank, lora.alpha, tuple(lora.target_modules)),
        max(1, members),
        Streams(config.seed).torch("adapters"),
        dtype=config.base.dtype,
        device=config.engine.device,
        generate_rows=config.engine.generate_rows,
        micro_batch_tokens=config.engine.micro_batch_tokens,
        max_grad_norm=config.engine.max_grad_norm,
        weight_decay=config.engine.weight_decay,
        clip_ratio=config.engine.clip_ratio,
        chat=config.base.format == "chat",
    )


def _exam(config: Config) -> Exam | None:
    if not config.exam.every:
        return None
    from azr_population.nano.exam import exam

    tasks = exam(config.exam.tasks_per_type, config.exam.seed)
    wanted = [task for task in tasks if str(task.type) in config.task.types]
    streams, device = Streams(config.exam.seed), config.engine.device
    return Exam(wanted, config.exam.attempts, lambda: streams.torch("exam", device=device))


def _play(play: SelfPlay, directory: RunDirectory, view: View) -> int:
    """Steps until the end or a signal; every record is on disk before a checkpoint covers it."""
    steps = play.config.run.steps
    loggers = open_loggers(play.config, directory, play.step, view.on_note)
    view.on_start(
        {
            "name": play.config.population.name,
            "steps": steps,
            "step": play.step,
            "dir": str(directory.path),
            "members": play.roster.to_json(),
            "lineage": list(directory.lineage()),
        }
    )
    result: dict[str, Any] = {"status": "failed", "dir": str(directory.path)}
    try:
        with _stop_requests(view) as stopped_by:
            while play.step < steps and not stopped_by:
                records = play.play_step()
                directory.append("tasks", records.tasks)
                directory.append("matches", records.matches)
                directory.append("lineage", records.lineage)
                directory.append("metrics", [records.metrics])
                for match in records.matches:
                    view.on_match(match)
                for birth in records.lineage:
                    view.on_replacement(birth)
                view.on_step(records.metrics)
                loggers.log(play.step, step_figures(records.metrics, len(records.lineage)))
                due = play.step % play.config.run.checkpoint_every == 0
                if due or play.step == steps or stopped_by:
                    _save(play, directory)
        stopped = play.step < steps
        result |= {
            "status": "interrupted" if stopped else "finished",
            "members": f"{directory.members} (SHA-256 {members_digest(directory.members)[:16]})",
            "report": str(write_report(directory.path)),
        }
    except KeyboardInterrupt:
        result["status"] = "interrupted"
        return 130
    finally:
        loggers.close()
        if result["status"] != "finished":
            result["resume"] = f"azr-population resume {directory.path}"
        view.on_end(result)
    return 128 + stopped_by[0] if stopped else 0


def _start(play: SelfPlay, directory: RunDirectory, seeds: Sequence[Task]) -> None:
    """The state before the first step."""
    for task in seeds:
        play.buffer.add(task)
    _save(play, directory)


def _save(play: SelfPlay, directory: RunDirectory) -> None:
    """The checkpoint first, because it is what a resume reads; then the members' folders."""
    save_checkpoint(
        directory.checkpoints,
        play.step,
        play.engine.state_dict(),
        play.state(),
        play.config.run.keep_checkpoints,
    )
    _export_members(play, directory)


def _export_members(play: SelfPlay, directory: RunDirectory) -> None:
    """Every member as a PEFT folder, each put in place whole."""
    base = str(play.config.base.path or nano_base_path())
    for member in play.roster:
        with replacing_folder(directory.members / member.name) as folder:
            save_adapter(play.engine.read_member(member.slot), folder, base)


@contextmanager
def _stop_requests(view: View) -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM, so that the step at hand is finished; a second one ends it."""
    received: list[int] = []

    def note(number: int, frame: Any) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)
        view.on_note("stopping after this step; once more to stop at once")

    previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def environment() -> dict[str, Any]:
    """What the run ran on: versions, platform, threads and the command."""
    packages = ("azr-population", "torch", "transformers", "peft", "numpy", "trueskill")
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "packages": {name: installed(name) for name in packages},
        "commit": commit(),
    }
