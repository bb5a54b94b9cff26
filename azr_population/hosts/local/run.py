"""A local run: made from its configuration, played, recorded, resumed.

Not covered: runs inside AZR; they use the same pieces under veRL (`hosts/azr`).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from azr_population.config.effects import RESUMABLE, differences, touches_only
from azr_population.config.load import config_from_file, to_yaml
from azr_population.config.schema import Config
from azr_population.domains.known import find_domain
from azr_population.engines.base_model import fingerprint
from azr_population.errors import UserError
from azr_population.files import write_atomically
from azr_population.hosts.local import state
from azr_population.hosts.local.check import check_config, fill_in
from azr_population.hosts.local.run_engine import base_of, open_engine, slot_names
from azr_population.hosts.loggers import open_loggers, step_figures
from azr_population.method.callbacks import Callback, EvalCallback, Warn, current_phase
from azr_population.method.completion_log import CompletionLog
from azr_population.method.config_check import all_protected_note
from azr_population.method.held_out_eval import (
    HeldOutEval,
    held_out_eval,
    self_proposed_eval,
    tasks_of,
)
from azr_population.method.measured_fitness import MeasureFitness, validation_eval
from azr_population.method.past_opponents import PastOpponents
from azr_population.method.replacement import MEASURED
from azr_population.method.step import SelfPlay
from azr_population.method.step_context import StepContext, format_of, open_referee
from azr_population.pages.console.stopping import stop_requests
from azr_population.pages.console.view import VIEWS, View, show_step
from azr_population.registry import trust
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import last_step, load_latest, members_digest, steps
from azr_population.runs.directory import next_folder
from azr_population.runs.records import by_number
from azr_population.versions import environment
from azr_population.weights.adapter import Adapter
from azr_population.weights.peft_folder import load_adapter


@dataclass(frozen=True)
class Run:
    """A run that has been played; `for step in run` goes through its steps.

    Everything is read from the run directory when it is asked for: `Run(path)` is one that was
    played before.
    """

    path: Path
    exit_code: int = 0
    """0, or 128 + the signal that stopped it after a finished step."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The lines of `metrics.jsonl`, one a step."""
        return self.directory.metrics()

    @property
    def directory(self) -> RunDirectory:
        """Its records: matches, tasks, lineage and so on."""
        return RunDirectory(self.path)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The same steps, as a list."""
        return list(self)

    @property
    def members(self) -> dict[str, Adapter]:
        """The members as they are now, by name, loaded from their PEFT folders."""
        names = sorted((path.name for path in self.directory.members.iterdir()), key=by_number)
        return {name: load_adapter(self.directory.member(name)) for name in names}


def train(config: Config, view: View | None = None, typed: Sequence[str] = ()) -> Run:
    """Starts the run that `config` describes, or goes on with it when `run.resume` is set.

    `view` shows it, by default as the command line does. `typed` are the overrides that made
    `config`: a resumed run takes only what it may change.

    Returns:
        The run, with the exit code that the command line ends with.

    Raises:
        UserError: anything about the configuration or the folder that the user can mend.
    """
    trust(config)
    config.run.dir = config.run.dir or str(next_folder(config.population.name))
    directory = RunDirectory(config.run.dir)
    fill_in(config.task)
    if config.run.resume and (directory.path / "config.yaml").exists():
        stored = config_from_file(directory.config_file)
        fill_in(stored.task)
        refuse_changes(stored, config)
        free = [text for text in typed if touches_only(text.split("=")[0], RESUMABLE)]
        return resume(directory.path, free, view)
    check_config(config)
    view = view or VIEWS.find(config.run.console).function()
    directory.refuse_unless_new()
    config.engine.threads = config.engine.threads or torch.get_num_threads()
    config.run.resume = False
    base = fingerprint(base_of(config.base))
    beginning = state.beginning_of(config, base)
    with _self_play(config) as (play, self_proposed):
        record = {
            **environment(),
            "threads": torch.get_num_threads(),
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "base": base,
            **({"fork": beginning.fork.record} if beginning.fork else {}),
        }
        directory.create(to_yaml(config), record)
        with directory.locked():
            state.start(play, directory, beginning, self_proposed, view)
            return Run(directory.path, _play(play, directory, view))


def resume(path: str | Path, overrides: Sequence[str] = (), view: View | None = None) -> Run:
    """Goes on with the run in `path` from its newest sound checkpoint; returns as `train` does.

    `overrides` may change what does not rewrite the past: `run.` and `eval.`, e.g. `run.steps=40`.
    """
    directory = RunDirectory(path)
    directory.refuse_results_only()
    stored = config_from_file(directory.config_file)
    config = config_from_file(directory.config_file, overrides)
    refuse_changes(stored, config)
    trust(config, outside=directory.path)
    if config.run.steps < (done := last_step(directory.checkpoints)):
        raise UserError(
            f"run.steps={config.run.steps} is less than the {done} steps that {path} has done; "
            "give more, or start a new run",
            key="run.steps",
        )
    check_config(config)
    view = view or VIEWS.find(config.run.console).function()
    config.run.dir = str(path)
    with directory.locked(), _self_play(config) as (play, self_proposed):
        if steps(directory.checkpoints):
            checkpoint = load_latest(directory.checkpoints)
            for damaged in checkpoint.skipped:
                view.on_note(
                    f"checkpoint {damaged} is damaged; going on from step {checkpoint.step}"
                )
            state.load(play, checkpoint, directory)
            # A crash may have come between the checkpoint and the members' folders.
            state.export(play, directory)
        else:
            beginning = state.beginning_of(config, fingerprint(base_of(config.base)))
            state.start(play, directory, beginning, self_proposed, view)
        directory.truncate(play.step)
        # What a later resume goes by, such as more steps.
        write_atomically(directory.path / "config.yaml", to_yaml(config))
        return Run(directory.path, _play(play, directory, view))


def refuse_changes(stored: Config, wanted: Config) -> None:
    """Raises `UserError` when `wanted` differs from a run's own configuration in what it plays."""
    for key, before, after in differences(stored, wanted):
        raise UserError(
            f"{key}={after} differs from the run's own {key}={before}; "
            "leave it out, or start a new run in another run.dir",
            key=key,
        )


@contextmanager
def _self_play(config: Config) -> Iterator[tuple[SelfPlay, HeldOutEval | None]]:
    """Loads the base, starts the referee and puts the population on it; and its eval of
    self-proposed tasks."""
    torch.set_num_threads(config.engine.threads or torch.get_num_threads())
    held_out = held_out_eval(config.eval, config.task) if config.eval.every else None
    validation = validation_eval(config.evolution, config.task, held_out)
    with open_referee(config.referee) as referee, open_engine(config) as engine:
        context = StepContext(
            engine, referee, find_domain(config.task.domain), format_of(config.task, config.base)
        )
        reported = tasks_of(held_out, validation)
        self_proposed = self_proposed_eval(config, context, reported) if held_out else None
        play = SelfPlay(config, context, [*reported, *tasks_of(self_proposed)])
        play.callbacks = make_callbacks(play, held_out, validation, self_proposed)
        yield play, self_proposed


def make_callbacks(
    play: SelfPlay,
    held_out: HeldOutEval | None,
    validation: HeldOutEval | None,
    self_proposed: HeldOutEval | None = None,
) -> list[Callback]:
    """What is measured in the run; `validation` is the eval that fitness goes by."""
    config, context, run = play.config, play.context, RunDirectory(play.config.run.dir)
    callbacks: list[Callback] = [
        CompletionLog(config.run.log_completions, context.engine.tokenizer)
    ]
    if fraction := config.matchmaking.past_opponent_fraction:
        slot = len(slot_names(config.population, config.matchmaking)) - 1
        callbacks.append(PastOpponents(run.snapshots, slot, fraction, context.engine))
    if config.evolution.fitness in MEASURED:
        callbacks.append(MeasureFitness(context, validation, config.seed))
    if held_out:
        last = config.run.steps
        callbacks.append(
            EvalCallback(context, held_out, config.eval, last, config.seed, self_proposed)
        )
    callbacks.append(Warn(run))  # the last, so that it sees the others' records
    return callbacks


def _play(play: SelfPlay, directory: RunDirectory, view: View) -> int:
    """Steps until the end or a signal; every record is on disk before a checkpoint covers it.
    Returns the exit code: 0, or 128 + the signal."""
    steps = play.config.run.steps
    loggers = open_loggers(play.config.logger, directory, play.step, view.on_note)
    view.on_start(
        {
            "name": play.config.population.name,
            "steps": steps,
            "step": play.step,
            "phase": current_phase,
            "dir": str(directory.path),
            "members": play.population.roster.to_json(),
            "lineage": list(directory.lineage()),
        }
    )
    smallest = min(play.config.population.teachers, play.config.population.students)
    if note := all_protected_note(play.config.evolution, smallest):
        view.on_note(note)
    result: dict[str, Any] = {"status": "failed", "dir": str(directory.path)}
    stopped_by: list[int] = []

    def say_stopping() -> None:
        if len(stopped_by) > 1:
            raise KeyboardInterrupt
        view.on_note(
            f"finishing step {play.step}, then stopping; to stop at once and lose what came after "
            f"the last checkpoint: Ctrl-C again, or kill {os.getpid()}"
        )

    # Imported late: pandas and Altair take seconds, and a run is to start at once.
    from azr_population.analysis.report import closing, write_report

    try:
        with stop_requests(stopped_by, say_stopping):
            while play.step < steps and not stopped_by:
                records = play.play_step()
                records.append_to(directory)
                show_step(view, records.metrics, records.matches, records.lineage, records.notes)
                loggers.log(play.step, step_figures(records.metrics))
                # Before the checkpoint, so that no resume goes on behind a missing one.
                state.take_snapshot(play, directory)
                state.keep_best_member(play, directory, records)
                due = play.step % play.config.run.checkpoint_every == 0
                if due or play.step == steps or stopped_by:
                    state.save(play, directory)
        stopped = play.step < steps
        result |= {
            "status": "interrupted" if stopped else "finished",
            "members": f"{directory.members} (SHA-256 {members_digest(directory.members)[:16]})",
            "report": str(write_report(directory.path)),
            **closing(directory.path),
        }
    except KeyboardInterrupt:
        result["status"] = "interrupted"
        return 128 + (stopped_by or [signal.SIGINT])[-1]
    except BrokenPipeError as error:
        # Whoever read our output has gone (`| head`).
        result["status"] = "interrupted"
        error.strerror = (
            f"nobody reads the output any more; stopped in step {play.step}, go on with: "
            f"azr-population resume {directory.path}"
        )
        raise
    except OSError as error:
        raise UserError(
            f"{_failed(error, directory.path)}: {error.strerror}; fix that and continue "
            f"from step {last_step(directory.checkpoints)} with: azr-population resume "
            f"{directory.path}"
        ) from error
    finally:
        loggers.close()
        if result["status"] != "finished":
            result["resume"] = f"azr-population resume {directory.path}"
        with suppress(BrokenPipeError):
            view.on_end(result)
    return 128 + stopped_by[0] if stopped else 0


def _failed(error: OSError, folder: Path) -> str:
    """What an error of the file system is about: a file elsewhere by its name, else the run."""
    file = error.filename
    if isinstance(file, str) and not Path(file).resolve().is_relative_to(folder.resolve()):
        return file
    return f"run.dir={folder} cannot be written"
