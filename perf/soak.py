"""A long run of the trainer: 4T+4S on the nano base, disturbed, against the same run undisturbed.

The second run is disturbed at moments drawn at random: the trainer is killed by SIGKILL, also while
it starts; its disk is full (RLIMIT_FSIZE of the running process is lowered, so that a write goes
through in part and then fails); all workers of its referee are killed at once. After each end it is
resumed.

On one machine the disturbed run must end with the members of the undisturbed one and the same
records, each line once, and no end may print a traceback. Memory must not grow after the first
tenth of the undisturbed run.

    OMP_NUM_THREADS=1 python perf/soak.py --json soak.json
    python perf/soak.py --steps 30 --kills 5 --full 1 --worker-kills 2     (minutes)
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import members_digest
from azr_population.runs.directory import RECORDS

SETTINGS = (
    "population=4t4s population.batch_size=4 population.samples_per_task=2 engine.threads=1 "
    "engine.max_proposal_tokens=48 engine.max_answer_tokens=16 eval.every=100 "
    "eval.tasks_per_type=4 run.snapshot_every=100 run.checkpoint_every=4 run.log_completions=8"
)


class Trainer:
    """The command that starts or resumes a run, as a process; its output is in the folder's log."""

    def __init__(self, folder: Path, settings: Sequence[str]) -> None:
        self.metrics = folder / "metrics.jsonl"
        self.log = folder.with_suffix(".log")
        self.memory: dict[int, int] = {}
        started = (folder / "config.yaml").exists()
        typed = ["resume", str(folder)] if started else ["train", f"run.dir={folder}", *settings]
        with self.log.open("ab") as log:
            self._printed_before = log.tell()
            # By way of a pipe, since the trainer's own disk becomes full.
            self._copier = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=log)
        command = [sys.executable, "-m", "azr_population.cli", *typed]
        pipe = self._copier.stdin
        self.process = subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT)
        assert pipe
        pipe.close()

    @property
    def step(self) -> int:
        """Steps that are recorded."""
        return self.metrics.read_bytes().count(b"\n") if self.metrics.exists() else 0

    @property
    def output(self) -> str:
        """All that it printed, once it has ended."""
        self._copier.wait()
        with self.log.open("rb") as log:
            log.seek(self._printed_before)
            return log.read().decode(errors="replace")

    def wait(self, step: float = float("inf"), seconds: float = float("inf")) -> bool:
        """Waits for a step, some seconds or the end; returns whether the process has ended."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and self.step < step and time.monotonic() < end:
            if size := anonymous(self.process.pid):
                self.memory[self.step] = size + sum(map(anonymous, children(self.process.pid)))
            time.sleep(0.05)
        return self.process.poll() is not None


def anonymous(pid: int) -> int:
    """A process's anonymous memory in bytes, 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return list(map(int, text.split()))


class DisturbedRun:
    """A run that is disturbed and resumed; `ends` counts how it ended each time."""

    def __init__(self, folder: Path, settings: Sequence[str], seed: int) -> None:
        self._folder, self._settings, self._draw = folder, settings, random.Random(seed)
        self.disturbances: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.faults: list[str] = []

    def play(self, moments: Sequence[tuple[float, str]]) -> Trainer:
        """Disturbs the run at these moments, in steps; returns the process that finished it."""
        trainer = self._start()
        for moment, kind in moments:
            if trainer.wait(int(moment)) or trainer.wait(seconds=moment % 1):
                break  # all steps are played, or it has ended with a fault
            if kind == "workers":
                for worker in children(trainer.process.pid):
                    os.kill(worker, signal.SIGKILL)
                    self.disturbances[kind] += 1
                continue
            self._end(trainer, kind)
            trainer = self._start()
            if kind == "kill while starting":
                trainer.wait(seconds=self._draw.uniform(0, 8))
                self._end(trainer, kind)
                trainer = self._start()
        trainer.wait()
        self._check(trainer, "finished", 0)
        return trainer

    def _start(self) -> Trainer:
        return Trainer(self._folder, self._settings)

    def _end(self, trainer: Trainer, kind: str) -> None:
        self.disturbances[kind] += 1
        if kind == "full disk":
            limit = self._draw.choice([0, self._draw.randrange(4000), self._draw.randrange(500000)])
            pid = trainer.process.pid
            hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))
        else:
            trainer.process.kill()
        trainer.wait()
        self._check(trainer, kind, 2 if kind == "full disk" else -signal.SIGKILL)

    def _check(self, trainer: Trainer, kind: str, expected: int) -> None:
        code = trainer.process.returncode
        self.ends[f"{kind}: {code}"] += 1
        if code != expected or "Traceback" in trainer.output:
            self.faults.append(f"{kind} at step {trainer.step}: {code}: {trainer.output[-2000:]}")


def differences(first: Path, other: Path, steps: int) -> list[str]:
    """Differences between two runs' records except times, and incomplete records in either."""
    runs = RunDirectory(first), RunDirectory(other)
    differing = [
        f"{run.path.name}: metrics are not of each step once, or there are damaged lines"
        for run in runs
        if run.unreadable()
        or [row["step"] for row in run.read("metrics")] != list(range(1, steps + 1))
    ]
    for record in RECORDS:
        rows = [[_untimed(row) for row in run.read(record)] for run in runs]
        if rows[0] != rows[1]:
            differing.append(f"{record}.jsonl differs: {len(rows[0])} and {len(rows[1])} lines")
    return differing


def _untimed(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if not key.startswith("time/")}


def soak(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Plays both runs; returns the figures, with failures under `faults`."""
    draw, steps = random.Random(arguments.seed), arguments.steps
    starting = arguments.kills // 10
    kinds = {"kill": arguments.kills - 2 * starting, "kill while starting": starting}
    kinds |= {"full disk": arguments.full, "workers": arguments.worker_kills}
    moments = sorted((draw.uniform(1, steps - 1), kind) for kind, n in kinds.items()
                     for _ in range(n))  # fmt: skip
    settings = [*SETTINGS.split(), f"run.steps={steps}", f"seed={arguments.seed}"]
    paths = folder / "calm", folder / "disturbed"
    calm, disturbed = (DisturbedRun(path, settings, arguments.seed) for path in paths)
    memory = calm.play([]).memory
    if calm.faults:
        return {"settings": settings, "faults": calm.faults}
    disturbed.play(moments)
    tenth = max(steps // 10, 1)
    early = median(size for step, size in memory.items() if tenth < step <= 2 * tenth)
    late = median(size for step, size in memory.items() if step > steps - tenth)
    growth = 100 * (late / early - 1)
    digests = [members_digest(path / "members") for path in paths]
    faults = [*calm.faults, *disturbed.faults, *differences(*paths, steps)]
    if digests[0] != digests[1]:
        faults.append(f"members differ: {digests}")
    if growth > arguments.growth:
        faults.append(f"memory grew by {growth:.1f}%")
    return {
        "settings": settings,
        "disturbances": dict(disturbed.disturbances),
        "ends": dict(disturbed.ends),
        "members": [digest[:16] for digest in digests],
        "memory growth, percent": round(growth, 2),
        "faults": faults,
    }


def main() -> None:
    """Runs, prints the figures; exit code 1 if there are faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--full", type=int, default=5, help="moments at which the disk is full")
    parser.add_argument("--worker-kills", type=int, default=10)
    parser.add_argument("--growth", type=float, default=5.0, help="percent of memory")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = soak(arguments, Path(folder))
    text = json.dumps(figures, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    if figures["faults"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
