"""A local run: made from its configuration, played, recorded, resumed.

Not covered: runs inside AZR; they use the same pieces under veRL (`hosts/azr`).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from azr_population.config.effects import changed_settings
from azr_population.config.load import config_from_file, to_yaml
from azr_population.config.schema import Config
from azr_population.console.heartbeat import stop_requests
from azr_population.console.live import console_view
from azr_population.console.view import View, show_start, show_step
from azr_population.engines.base_model import fingerprint
from azr_population.errors import UserError, first_line
from azr_population.files import write_atomically, writing
from azr_population.hosts.local.local_plan import resolve
from azr_population.hosts.local.run_engine import open_engine
from azr_population.hosts.local.state import RunState
from azr_population.hosts.loggers import open_loggers, step_figures
from azr_population.method.callbacks import (
    Callback,
    EvalCallback,
    Warn,
    declared,
    own_callbacks,
)
from azr_population.method.completion_log import CompletionLog
from azr_population.method.config_check import evolution_note
from azr_population.method.held_out_eval import HeldOutEval, held_out_eval
from azr_population.method.phases import StepContext
from azr_population.method.run_plan import RunPlan
from azr_population.method.step import SelfPlay
from azr_population.printable import redact
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import last_step, load_latest, members_digest, steps
from azr_population.runs.directory import member_folders, next_folder
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
        return self.directory.read("metrics")

    @property
    def directory(self) -> RunDirectory:
        """Its records: matches, tasks, lineage and so on."""
        return RunDirectory(self.path)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of `metrics.jsonl` as a list."""
        return list(self)

    @property
    def members(self) -> dict[str, Adapter]:
        """The members as they are now, by name, loaded from their PEFT folders."""
        return {path.name: load_adapter(path) for path in member_folders(self.directory.members)}


def train(config: Config, view: View | None = None) -> Run:
    """Plays the run that `config` describes; `view` shows it, by default as the command line does.
    Returns the run, with the exit code that the command line ends with. Raises UserError: anything
    about the configuration or the folder that the user can mend."""
    plan = resolve(config)
    folder = config.run.dir or str(next_folder(config.population.name, reserve=True))
    directory = RunDirectory(folder)
    directory.refuse_unless_new()
    try:
        return _run(plan.recorded_in(folder), directory, view, new=True)
    finally:
        with suppress(OSError):
            directory.path.rmdir()  # only if it is empty: nothing was started


def resume(path: str | Path, overrides: Sequence[str] = (), view: View | None = None) -> Run:
    """Goes on with the run in `path` from its newest sound checkpoint; returns as `train` does.

    `overrides` may change what does not rewrite the past: `run.` and `eval.`, e.g. `run.steps=40`.
    """
    directory = RunDirectory(path)
    directory.refuse_results_only()
    config = config_from_file(directory.config_file, overrides)
    stored = config_from_file(directory.config_file)
    for key, before, after in changed_settings(stored, config):
        raise UserError(
            f"{key}={after} differs from the run's own {key}={before}; leave it out, or start a "
            "new run in another run.dir",
            key=key,
        )
    if bool(config.eval.every) != bool(stored.eval.every):
        raise UserError(
            f"eval.every={config.eval.every} differs from the run's own {stored.eval.every}: a run "
            "refuses the programs of its eval from its first step to its last, or never; leave it "
            "out, or start a new run",
            key="eval.every",
        )
    if config.run.steps < (done := last_step(directory.checkpoints)):
        raise UserError(
            f"run.steps={config.run.steps} is less than the {done} steps that {path} has done; "
            "give more, or start a new run",
            key="run.steps",
        )
    recorded = directory.last_recorded_step()
    # A crash before the first checkpoint leaves that checkpoint's step as the last recorded one.
    lost = not done and recorded > stored.run.checkpoint_every
    if lost and not directory.checkpoints.is_file():  # which `locked` names
        raise UserError(
            f"{path} has {recorded} steps and no checkpoint, so it cannot be continued; start a "
            "new run in another run.dir"
        )
    if recorded == done == config.run.steps > 0:
        # Its members and its report may be unfinished, so it goes on to them.
        view = view or console_view(config.run.console)
        more = f"azr-population resume {path} run.steps={2 * done}"
        view.on_note(f"{path} has finished its {done} steps; to play more: {more}")
    plan = resolve(config).recorded_in(str(path))
    directory.check_base(fingerprint(plan.engine.base), "; give it that one back (base.path)")
    with directory.locked():
        return _run(plan, directory, view)


def _run(plan: RunPlan, directory: RunDirectory, view: View | None, new: bool = False) -> Run:
    """Plays the run from its newest sound checkpoint, or from its start. The directory of a `new`
    one is created and locked here; that of another has been locked."""
    config = plan.config
    view = view or console_view(config.run.console)
    checkpoint = load_latest(directory.checkpoints) if steps(directory.checkpoints) else None
    if checkpoint:
        directory.refuse_lost_steps(checkpoint.step)
    with _self_play(plan) as play, ExitStack() as stack:
        state = RunState(play, directory, plan.engine.base)
        if new:
            record: dict[str, Any] = {
                **environment(),
                "threads": torch.get_num_threads(),
                "command": redact([Path(sys.argv[0]).name, *sys.argv[1:]]),
                "base": fingerprint(plan.engine.base),
                **declared(play.callbacks),
            }
            directory.create(to_yaml(config), record)
            stack.enter_context(directory.locked())
        if checkpoint:
            for damaged in checkpoint.skipped:
                view.on_note(
                    f"checkpoint {damaged} is damaged; going on from step {checkpoint.step}"
                )
            state.load(checkpoint)
        with writing(f"run.dir={directory.path}"):
            directory.truncate(play.step)
            if checkpoint:
                # A crash may have come between the checkpoint and the members' folders.
                state.folders.export()
            else:
                state.begin()
            # What a later resume goes by, such as more steps.
            write_atomically(directory.path / "config.yaml", to_yaml(config))
        return Run(directory.path, _play(state, view))


@contextmanager
def _self_play(plan: RunPlan) -> Iterator[SelfPlay]:
    """Loads the base, starts the referee and puts the population on it."""
    config, domain = plan.config, plan.domain
    torch.set_num_threads(config.engine.threads)
    held_out = held_out_eval(domain, config) if config.eval.every else None
    with StepContext.open(plan, open_engine(plan)) as context:
        play = SelfPlay(config, context, held_out.tasks if held_out else [])
        play.callbacks = make_callbacks(play, held_out)
        yield play


def make_callbacks(play: SelfPlay, held_out: HeldOutEval | None) -> list[Callback]:
    """Callbacks that measure the run."""
    config, context, run = play.config, play.context, RunDirectory(play.config.run.dir)
    callbacks: list[Callback] = [
        CompletionLog(config.run.log_completions, context.engine.tokenizer)
    ]
    if held_out:
        last = config.run.steps
        callbacks.append(EvalCallback(context, held_out, config.eval, last, config.seed))
    callbacks += own_callbacks(config.callbacks)
    # The last, so that it sees the others' records.
    callbacks.append(Warn(run, uses_replay=config.population.replay_fraction > 0))
    return callbacks


def _play(state: RunState, view: View) -> int:
    """Steps until the end or a signal; every record is on disk before a checkpoint covers it.
    Returns the exit code: 0, or 128 + the signal."""
    play, directory, steps = state.play, state.directory, state.play.config.run.steps
    loggers = open_loggers(play.config.logger.names, directory, play.step, view.on_note)
    population = play.config.population
    show_start(view, directory, population.name, steps, play.step, play.population)
    if note := evolution_note(play.config.evolution, population.teachers, population.students):
        view.on_note(note)
    if getattr(play.context.engine.tokenizer, "asks_for_date", False):
        day = play.config.base.prompt_date
        view.on_note(f"the chat template asks for the date, and gets base.prompt_date={day}")
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
    from azr_population.analysis.report import terminal_summary, write_report

    try:
        with stop_requests(stopped_by, say_stopping):
            while play.step < steps and not stopped_by:
                records = play.play_step()
                records.append_to(directory)
                show_step(view, records.metrics, records.matches, records.lineage, records.notes)
                loggers.log(play.step, step_figures(records.metrics))
                # Before the checkpoint, so that no resume goes on behind a missing one.
                state.take_snapshot()
                state.keep_best_member(records)
                due = play.step % play.config.run.checkpoint_every == 0
                if due or play.step == steps or stopped_by:
                    state.save()
        stopped = play.step < steps
        result |= {
            "status": "interrupted" if stopped else "finished",
            "members": f"{directory.members} (SHA-256 {members_digest(directory.members)[:16]})",
            "report": str(write_report(directory.path)),
            **terminal_summary(directory.path),
        }
    except KeyboardInterrupt:
        result["status"] = "interrupted"
        return 128 + (stopped_by or [signal.SIGINT])[-1]
    except BrokenPipeError as error:  # what read our output has ended (`| head`)
        result["status"] = "interrupted"
        error.strerror = (
            f"stopped in step {play.step}; continue with: azr-population resume {directory.path}"
        )
        raise
    except OSError as error:
        if error.errno is None:  # a worker that does not answer, not a full disk
            raise
        raise UserError(
            f"run.dir={directory.path}: {first_line(error)}; fix that and continue from step "
            f"{last_step(directory.checkpoints)} with: azr-population resume {directory.path}"
        ) from error
    finally:
        loggers.close()
        if result["status"] != "finished" and not result.get("changed"):  # which says it
            result["resume"] = f"azr-population resume {directory.path}"
        with suppress(BrokenPipeError):
            view.on_end(result)
    return 128 + stopped_by[0] if stopped else 0
