"""Plays the runs of a recipe, some at a time, each in a process of its own.

A run is a child in a session of its own, so that Ctrl-C reaches it through us alone: the first
one lets every child finish its step and save, the second ends them at once. Either way each run
can be resumed. A child whose parent was killed ends at its next line of output.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from azr_population.config.load import to_yaml
from azr_population.errors import UserError
from azr_population.experiments.runs import PlannedRun
from azr_population.files import write_atomically
from azr_population.runs.diagnostics.from_exams import CROSSPLAY
from azr_population.runs.formatting import duration

_STEP = re.compile(r"step (\d+)/(\d+) \| ([\d.]+) s,")
_ALIVE = re.compile(r"  (step \d+: .* so far)$")
_SECONDS_BETWEEN_LINES = 30.0


class Runner:
    """Plays runs; `say` prints a line."""

    def __init__(self, jobs: int, say: Callable[[str], None]) -> None:
        self._jobs = jobs
        self._say = say
        self._children: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._signals = 0
        self._left: dict[str, float] = {}

    def play(self, runs: Sequence[PlannedRun]) -> int:
        """Starts or resumes each of `runs`; returns 0, or 128 + the signal that stopped it. Raises
        UserError: a run failed. Those beside it were let finish; no other one was started."""
        waiting = deque(enumerate(runs, 1))
        self._left = {run.name: run.seconds_left for run in runs}
        with self._stop_requests() as received, ThreadPoolExecutor(self._jobs) as pool:
            busy: set[Future[str | None]] = set()
            failures: list[str] = []
            while busy or (waiting and not received and not failures):
                while waiting and len(busy) < self._jobs and not received and not failures:
                    number, run = waiting.popleft()
                    busy.add(pool.submit(self._play_one, run, f"[{number}/{len(runs)}]"))
                # Short waits, because a signal is heard between them only.
                ended, busy = wait(busy, timeout=0.2, return_when=FIRST_COMPLETED)
                failures += [text for one in ended if (text := one.result()) is not None]
        if failures and not received:
            raise UserError("; ".join(failures))
        return 128 + received[0] if received else 0

    def _play_one(self, run: PlannedRun, number: str) -> str | None:
        """Plays one run to its end; returns what went wrong, None if nothing did."""
        log = run.path.with_name(f"{run.path.name}.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        verb = f"goes on from step {run.done}" if run.started else "starts"
        self._say(f"{number} {run.name}: {verb}, {run.steps} steps, in {run.path}")
        began = last_line = time.monotonic()
        with log.open("a", encoding="utf-8") as record:
            child = self._start(run)
            assert child.stdout is not None
            tail: deque[str] = deque(maxlen=5)
            for line in child.stdout:
                record.write(line)
                tail.append(line.strip())
                step = _STEP.match(line)
                if step:
                    self._note_progress(run, int(step[1]), float(step[3]))
                    if time.monotonic() - last_line > _SECONDS_BETWEEN_LINES:
                        last_line = time.monotonic()
                        self._say(f"{number} {run.name}: {self._progress(run, step)}")
                elif alive := _ALIVE.match(line):
                    self._say(f"{number} {run.name}: {alive[1]}")
            code = child.wait()
            with self._lock:
                self._children.discard(child)
        if code == 0:
            spent = duration(time.monotonic() - began)
            self._say(f"{number} {run.name}: finished in {spent}; {self._all_left()}")
            return None
        if self._signals:
            self._say(f"{number} {run.name}: stopped after step {run.done} of {run.steps}")
            return None
        last = next((text for text in reversed(tail) if text), "no output")
        return f"{run.name} failed (exit code {code}): {last}; all of it is in {log}"

    def _start(self, run: PlannedRun) -> subprocess.Popen[str]:
        # One thread each unless told otherwise; CI=1 asks for plain lines.
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "CI": "1", "PYTHONUNBUFFERED": "1"}
        with self._lock:
            child = subprocess.Popen(
                run_command(run),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=environment,
                start_new_session=True,
            )
            self._children.add(child)
        if self._signals:
            child.send_signal(signal.SIGINT)
        return child

    def _note_progress(self, run: PlannedRun, step: int, seconds: float) -> None:
        self._left[run.name] = seconds * (run.steps - step)

    def _progress(self, run: PlannedRun, step: re.Match[str]) -> str:
        left = duration(self._left[run.name])
        return f"step {step[1]}/{step[2]}, {step[3]} s a step, {left} left; {self._all_left()}"

    def _all_left(self) -> str:
        unfinished = sum(self._left.values()) / self._jobs
        return f"all runs: about {duration(unfinished)} left" if unfinished else "all runs are done"

    @contextmanager
    def _stop_requests(self) -> Iterator[list[int]]:
        """Collects SIGINT and SIGTERM and passes each on to the children as SIGINT."""
        received: list[int] = []

        def note(number: int, frame: Any) -> None:
            received.append(number)
            self._signals += 1
            if len(received) == 1:
                self._say("stopping after the steps at hand; once more to stop at once")
            for child in list(self._children):
                if child.poll() is None:
                    child.send_signal(signal.SIGINT)

        previous = {
            number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield received
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def run_command(run: PlannedRun) -> list[str]:
    """The command line that starts a run, or goes on with it."""
    # A typed fork starts from the settings of the run that it leaves; an arm is written out.
    if run.arm.fork:
        settings = run.path.with_name(f"{run.path.name}.settings.yaml")
        settings.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(settings, to_yaml(run.wanted))
    own = ["--config-file", str(settings)] if run.arm.fork else run.overrides
    typed = ["train", *own, f"run.dir={run.path}"]
    if run.started:
        typed = ["resume", str(run.path)]
    return [sys.executable, "-m", "azr_population.cli", *typed, f"run.steps={run.steps}"]


def build_base(path: Path, minutes: float, seed: int, say: Callable[[str], None]) -> None:
    """Makes a nano base at `path` unless there is one."""
    if (path / "build.json").is_file():
        return
    say(f"making the nano base {path}: {minutes:g} minutes")
    typed = ["nano", "build", str(path), "--minutes", f"{minutes:g}", "--seed", str(seed)]
    command = [sys.executable, "-m", "azr_population.cli", *typed, "--threads", "1"]
    code = subprocess.run(command, check=False).returncode
    if code:
        raise UserError(f"the base {path} could not be made (exit code {code})")


def play_each_other(run: PlannedRun, every: int, say: Callable[[str], None]) -> None:
    """Lets the members that a finished run has stored at every so many steps play each other,
    unless they have."""
    if run.is_kept or not run.finished or (run.path / CROSSPLAY).is_file():
        return
    say(f"{run.name}: cross-play of the snapshots of every {every} steps")
    typed = ["crossplay", str(run.path), "--every", str(every)]
    command = [sys.executable, "-m", "azr_population.cli", *typed]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    code = subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL)
    if code.returncode:
        raise UserError(f"the cross-play of {run.path} failed (exit code {code.returncode})")
