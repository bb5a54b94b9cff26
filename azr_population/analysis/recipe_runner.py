"""Plays the runs of a recipe, some at a time, each in a process of its own.

A run is in a session of its own, so that Ctrl-C reaches it through us alone: the first one lets
every run finish its step and save, the second ends them at once. Either way it can be resumed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from azr_population.analysis.recipe_runs import PlannedRun
from azr_population.analysis.recipes import Base
from azr_population.config.load import to_yaml
from azr_population.errors import UserError
from azr_population.files import write_atomically
from azr_population.printable import duration

CLI = (sys.executable, "-m", "azr_population.cli")
_SECONDS_BETWEEN_LINES = 30.0
Say = Callable[[str], None]
"""Prints a line."""


def play(runs: Sequence[PlannedRun], jobs: int, say: Say) -> int:
    """Starts or resumes each of `runs`, `jobs` at a time; returns 0, or 128 + the signal that
    stopped it. Raises UserError: a run failed. Those beside it finish; no other one is started."""
    waiting = deque(enumerate(runs, 1))
    playing: dict[subprocess.Popen[bytes], tuple[str, PlannedRun]] = {}
    failures: list[str] = []
    last_line = time.monotonic()
    with _stop_requests(playing, say) as received:
        while playing or (waiting and not received and not failures):
            while waiting and len(playing) < jobs and not received and not failures:
                number, run = waiting.popleft()
                label = f"[{number}/{len(runs)}] {run.name}"
                verb = f"goes on from step {run.done}" if run.started else "starts"
                say(f"{label}: {verb}, {run.steps} steps, in {run.path}")
                playing[_start(run)] = (label, run)
            time.sleep(0.2)
            for child in [child for child in playing if child.poll() is not None]:
                label, run = playing.pop(child)
                if child.returncode == 0:
                    say(f"{label}: finished")
                elif received:
                    say(f"{label}: stopped after step {run.done} of {run.steps}")
                else:
                    failures.append(
                        f"{run.name} failed (exit code {child.returncode}): "
                        f"{_last_line(_log(run))}; all of it is in {_log(run)}"
                    )
            if playing and time.monotonic() - last_line > _SECONDS_BETWEEN_LINES:
                last_line = time.monotonic()
                begun = [run for _, run in playing.values()]
                seconds = sum(run.seconds_left for run in [*begun, *(run for _, run in waiting)])
                say(
                    ", ".join(f"{run.name} step {run.done}/{run.steps}" for run in begun)
                    + f"; all runs: about {duration(seconds / jobs)} left"
                )
    if failures and not received:
        raise UserError("; ".join(failures))
    return 128 + received[0] if received else 0


def _log(run: PlannedRun) -> Path:
    return run.path.with_name(f"{run.path.name}.log")


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")


def _start(run: PlannedRun) -> subprocess.Popen[bytes]:
    run.path.parent.mkdir(parents=True, exist_ok=True)
    # One thread each unless told otherwise; CI=1 asks for plain lines.
    environment = {"OMP_NUM_THREADS": "1", **os.environ, "CI": "1", "PYTHONUNBUFFERED": "1"}
    with _log(run).open("ab") as log:
        return subprocess.Popen(
            run_command(run),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def run_command(run: PlannedRun) -> list[str]:
    """The command line that starts a run, or goes on with it."""
    if run.started:
        return [*CLI, "resume", str(run.path), f"run.steps={run.steps}"]
    # The whole configuration is written out: a typed fork would take the settings of its origin.
    settings = run.path.with_name(f"{run.path.name}.settings.yaml")
    write_atomically(settings, to_yaml(run.wanted))
    typed = ["train", "--config-file", str(settings), f"run.dir={run.path}"]
    return [*CLI, *typed, f"run.steps={run.steps}"]


@contextmanager
def _stop_requests(
    playing: dict[subprocess.Popen[bytes], tuple[str, PlannedRun]], say: Say
) -> Iterator[list[int]]:
    """Collects SIGINT and SIGTERM and passes each on to the runs as SIGINT."""
    received: list[int] = []

    def note(number: int, frame: Any) -> None:
        received.append(number)
        if len(received) == 1:
            say("stopping after the steps at hand; once more to stop at once")
        for child in list(playing):
            if child.poll() is None:
                child.send_signal(signal.SIGINT)

    previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def build_base(path: Path, base: Base, say: Say) -> None:
    """Makes a nano base at `path` unless it is there."""
    if (path / "build.json").is_file():
        return
    say(f"making the nano base {path}: {base.minutes:g} minutes")
    typed = ["--minutes", f"{base.minutes:g}", "--seed", str(base.seed), "--threads", "1"]
    code = subprocess.run([*CLI, "base", "build", str(path), *typed], check=False).returncode
    if code:
        raise UserError(f"the base {path} could not be made (exit code {code})")


def play_each_other(run: PlannedRun, every: int, say: Say) -> None:
    """Lets the members that a finished run has stored at every so many steps play each other,
    unless they have."""
    if run.directory.results_only or not run.finished or (run.path / "crossplay.json").is_file():
        return
    say(f"{run.name}: cross-play of the snapshots of every {every} steps")
    typed = ["crossplay", str(run.path), "--every", str(every)]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    done = subprocess.run([*CLI, *typed], check=False, env=environment, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise UserError(f"the cross-play of {run.path} failed (exit code {done.returncode})")
