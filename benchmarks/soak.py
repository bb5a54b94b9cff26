"""A long run of the trainer: 4T+4S on the nano base, disturbed, against the same run undisturbed.

In both runs 5% of the proposals are replaced by odd programs (`ODD`), drawn by (seed, row), as if a
member had written them. The second run is disturbed at moments drawn at random: the trainer is
killed by SIGKILL, also while it starts; its disk is full (RLIMIT_FSIZE of the running process is
lowered, so that a write goes through in part and then fails); all workers of its referee are killed
at once. After each end it is resumed.

On one machine the disturbed run must end with the members of the undisturbed one and the same
records, each line once. Every failure must end with one line of ours. Memory must not grow after
the first tenth of the undisturbed run.

    OMP_NUM_THREADS=1 python benchmarks/soak.py --json soak.json
    python benchmarks/soak.py --steps 30 --kills 5 --full 1 --worker-kills 2     (minutes)

Trainers are forked from this process, which has imported what they need; they run the command line.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import azr_population.analysis.report  # noqa: F401  (what a trainer imports late)
from azr_population import cli
from azr_population.config.load import load_config
from azr_population.domains.code.formats import CODE_F_INPUTS, IN, PROPOSE
from azr_population.domains.code.task_types import TaskType
from azr_population.hosts.local import run as local_run
from azr_population.hosts.local.run_engine import meta_base
from azr_population.runs import RunDirectory
from azr_population.runs.checkpoint import members_digest
from azr_population.runs.directory import RECORDS

ODD_SHARE = 0.05
SETTINGS = (
    "population=4t4s",
    "population.batch_size=4",
    "population.samples_per_task=2",
    "engine.threads=1",
    "engine.max_proposal_tokens=48",
    "engine.max_answer_tokens=16",
    "eval.every=100",
    "eval.tasks_per_type=4",
    "run.snapshot_every=100",
    "run.checkpoint_every=4",
    "run.log_completions=8",
    "run.console=lines",
)
ODD = [
    *("def f(x):\n    return f'{{x}} apples {n}'", "def f(x):\n    return f'{{x!r:>{n}}}{{x=}}'"),
    "def f(x):\n    return f'{{\"\\x07\"}}{n}'",
    "def f(x):\n    return b'\\xff\\x00' * {n}",
    "def f(x):\n    return '\\ud800{n}'",
    "def f(x):\n    return '\ud800{n}'",
    "# -*- coding: utf-7 -*-\ndef f(x):\n    return {n}",
    "\ufeffdef f(x):\n    return (x, {n})",
    "def f(x):\n    return x + {n}\0",
    "def f(x):\n    return x +\r {n}",
    "def f(x):\n    return " + "(" * 90 + "{n}" + ")" * 90,
    "def f(x):\n    return " + "-" * 100 + "{n}",
    "def f(x):\n    a = []\n    for i in range({n} + 9000): a = [a]\n    return a",
    "def f(x):\n    return 0x" + "f" * 120 + " + {n}",
    "def f(x):\n    return 9 ** 9999 + {n}",
    "def f(x):\n    return 1e999 + {n}",
    "def f(x):\n    return float('nan') * {n}",
    "def f(x):\n    return [{n}, 1e308 * 10]",
    "def f(x):\n    while {n}: pass",
    "def f(x):\n    a = [{n}]\n    while True: a += a",
    "def f(x):\n    return f(x + {n})",
    "import os\ndef f(x):\n    os._exit({n})",
    "import os\ndef f(x):\n    return os.fork() or {n}",
    "import time\ndef f(x):\n    return time.time() + {n}",
    "import random\ndef f(x):\n    return random.random() + {n}",
    "def f(x):\n    raise SystemExit({n})",
    "def f(x):\n    print('\\033[2J' * {n})\n    return x",
    "def f(x):\n    return '\\x1b]0;{n}\\x07\\u202e'",
    "def f(x):\n    return '\u202e\u2066{n}'",
    "def f(x):\n    return '</script><script>alert({n})</script>'",
    "def f(x):\n    return '=cmd|calc!A{n}'",
    "def f(x):\n    return '\\\\input{{/etc/passwd}}$\\\\alpha_{n}$ & % #'",
    "def f(x):\n    return {{x: {n}, frozenset(): ...}}",
    "def f(x):\n    global f\n    f = {n}\n    return f",
    "class f:\n    def __new__(cls, x): return {n}",
    "async def f(x):\n    return {n}",
    "f = lambda *x, **y: (x, {n})",
    "def f(x):\n    match x:\n        case [*_]: return {n}\n    return x",
    "def f(x):\n    return 'e\u0301\U0001f468\u200d\U0001f469{n}'",
]
"""Programs with a place for a number, each short enough for the nano base to have written it."""


def odd_proposal(mark: str, generator: np.random.Generator) -> str:
    """An odd program with arguments, as a member would write it for the type of this mark."""
    program = ODD[generator.integers(len(ODD))].format(n=generator.integers(1, 10**6))
    if mark != PROPOSE[TaskType.CODE_F]:
        return program + IN + ("7" if generator.random() < 0.7 else "float('nan'), '\\ud800'")
    return program + "".join(f"{IN}{number}" for number in range(CODE_F_INPUTS))


@contextmanager
def with_odd_proposals(config: Any) -> Iterator[Any]:
    """The engine of a local run with 5% of its proposals replaced."""
    with open_engine(config) as engine:
        generate = engine.generate

        def generate_some_odd(prompts, slots, sampling, seed):  # type: ignore[no-untyped-def]
            groups = generate(prompts, slots, sampling, seed)
            marks = set(PROPOSE.values())
            for row, (prompt, group) in enumerate(zip(prompts, groups, strict=True)):
                generator = np.random.default_rng([seed, row])
                if prompt in marks and generator.random() < ODD_SHARE:
                    text = odd_proposal(prompt, generator)
                    group[0] = replace(group[0], text=text, finished=True)
            return groups

        engine.generate = generate_some_odd
        yield engine


open_engine = local_run.open_engine


class Trainer:
    """A command in a separate process, its output and its progress."""

    def __init__(self, log: Path, *arguments: str) -> None:
        reader, writer = os.pipe()
        self.began = time.monotonic()
        self.step, self.steps_at, self.memory = 0, [self.began], dict[int, int]()
        self.pid = os.fork()
        if not self.pid:
            os.close(reader)
            _run_command(writer, arguments)
        os.close(writer)
        self.printed: list[str] = []
        self._log = log
        self._thread = threading.Thread(target=self._read, args=(reader,))
        self._thread.start()

    def _read(self, reader: int) -> None:
        with open(reader, encoding="utf-8", errors="replace") as lines, self._log.open("a") as log:
            for line in lines:
                self.printed.append(line)
                log.write(line)
                log.flush()
                if match := re.search(r"step (\d+): student", line):
                    self.step = int(match[1])
                    self.steps_at.append(time.monotonic())
                    self.memory[self.step] = sum(map(anonymous, [self.pid, *self.workers()]))

    @property
    def step_seconds(self) -> float:
        """Seconds of the newest step."""
        return self.steps_at[-1] - self.steps_at[-2] if len(self.steps_at) > 1 else 5.0

    def workers(self) -> list[int]:
        """The processes of its referee."""
        return children(self.pid)

    def wait(self, step: int = sys.maxsize, until: float = float("inf")) -> bool:
        """Waits for a step, some seconds or the end; returns whether it has ended."""
        while self.step < step and time.monotonic() < until:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return True
            time.sleep(0.01)
        return False

    def end(self) -> int:
        """Its exit code, -9 if it was killed."""
        _, status = os.waitpid(self.pid, 0)
        self._thread.join()
        return os.waitstatus_to_exitcode(status)


def _run_command(writer: int, arguments: Sequence[str]) -> None:
    """Runs the command in a forked process, with its output in the pipe."""
    code = 70
    try:
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        local_run.open_engine = with_odd_proposals
        sys.argv = ["azr-population", *arguments]
        code = cli.main() or 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def anonymous(pid: int) -> int:
    """A process's anonymous memory in bytes, 0 if it is gone. Pages that a fork shares with this
    process count from the start, so writing to them later is not growth."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []


@dataclass
class Disturbed:
    """The disturbances of a run, and how it ended each time."""

    done: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    faults: list[str] = field(default_factory=list)

    def end(self, trainer: Trainer, expected: int, what: str) -> None:
        """Records how a trainer ended, and a fault if it should have ended otherwise."""
        code = trainer.end()
        self.ends[f"{what}: {code}"] += 1
        text = "".join(trainer.printed)
        if code != expected or "Traceback" in text:
            self.faults.append(f"{what} at step {trainer.step}: {code}: {text[-2000:]}")


def play(folder: Path, settings: Sequence[str]) -> tuple[Trainer, Disturbed]:
    """The undisturbed run."""
    outcome = Disturbed(starts=1)
    trainer = Trainer(folder.with_suffix(".log"), "train", f"run.dir={folder}", *settings)
    trainer.wait()
    outcome.end(trainer, 0, "finished")
    return trainer, outcome


def play_disturbed(
    folder: Path, settings: Sequence[str], moments: Sequence[tuple[float, str]], seed: int
) -> Disturbed:
    """The run, disturbed at each of these moments (in steps) and resumed each time."""
    draw, outcome = random.Random(seed), Disturbed()
    log = folder.with_suffix(".log")

    def start() -> Trainer:
        outcome.starts += 1
        if (folder / "config.yaml").exists():
            return Trainer(log, "resume", str(folder))
        return Trainer(log, "train", f"run.dir={folder}", *settings)

    def kill(trainer: Trainer) -> None:
        os.kill(trainer.pid, signal.SIGKILL)
        outcome.done["trainer killed"] += 1
        outcome.end(trainer, -signal.SIGKILL, "killed")

    trainer = start()
    for moment, what in moments:
        if what == "kill while starting":
            if not trainer.wait(int(moment)):
                kill(trainer)
            trainer = start()
            trainer.wait(until=time.monotonic() + draw.uniform(0, 8))
            kill(trainer)
            trainer = start()
            continue
        if trainer.wait(int(moment)) or trainer.wait(
            until=time.monotonic() + moment % 1 * trainer.step_seconds
        ):
            break  # it has ended before its time, or all steps are played
        if what == "kill":
            kill(trainer)
        elif what == "full disk":
            limit = draw.choice([0, draw.randrange(4_000), draw.randrange(500_000)])
            hard = resource.prlimit(trainer.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(trainer.pid, resource.RLIMIT_FSIZE, (limit, hard))
            outcome.done["disk full"] += 1
            trainer.wait()
            outcome.end(trainer, 2, "disk full")
        else:
            for worker in trainer.workers():
                outcome.done["referee's workers killed"] += 1
                os.kill(worker, signal.SIGKILL)
            continue
        trainer = start()
    trainer.wait()
    outcome.end(trainer, 0, "finished")
    return outcome


def differences(first: Path, other: Path, steps: int) -> list[str]:
    """Differences between two runs' records except times, and incomplete records in either."""
    differing = []
    runs = RunDirectory(first), RunDirectory(other)
    for run in runs:
        if [row["step"] for row in run.metrics()] != list(range(1, steps + 1)):
            differing.append(f"{run.path.name}: metrics are not of each step once")
        if bad := run.unreadable():
            differing.append(f"{run.path.name}: unreadable lines: {bad}")
    for record in RECORDS:
        rows = [[_untimed(row) for row in run._read(record)] for run in runs]
        if rows[0] != rows[1]:
            number = next(
                (n for n, (a, b) in enumerate(zip(*rows, strict=False)) if a != b), "the end"
            )
            differing.append(
                f"{record}: {len(rows[0])} and {len(rows[1])} lines differ from {number}"
            )
    return differing


def _untimed(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if not key.startswith("time/")}


def soak(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Makes both runs; returns the figures, with failures under `faults`."""
    draw = random.Random(arguments.seed)
    starting = arguments.kills // 10
    kinds = {
        "kill": arguments.kills - 2 * starting,
        "kill while starting": starting,
        "full disk": arguments.full,
        "workers": arguments.worker_kills,
    }
    moments = sorted(
        (draw.uniform(1, arguments.steps - 1), kind) for kind, n in kinds.items() for _ in range(n)
    )
    settings = [
        *SETTINGS,
        f"run.steps={arguments.steps}",
        f"seed={arguments.seed}",
        *arguments.settings,
    ]
    meta_base(load_config(settings).base)  # imports what a trainer would, each of them anew
    began = time.monotonic()
    trainer, calm = play(folder / "calm", settings)
    between = time.monotonic()
    outcome = play_disturbed(folder / "disturbed", settings, moments, arguments.seed)
    ended = time.monotonic()
    tenth = max(arguments.steps // 10, 1)
    early = [size for step, size in trainer.memory.items() if tenth < step <= 2 * tenth]
    late = [size for step, size in trainer.memory.items() if step > arguments.steps - tenth]
    growth = 100 * (median(late) / median(early) - 1)
    runs = folder / "calm", folder / "disturbed"
    digests = [members_digest(run / "members") for run in runs]
    faults = [*calm.faults, *outcome.faults, *differences(*runs, arguments.steps)]
    if digests[0] != digests[1]:
        faults.append(f"members differ: {digests}")
    if growth > arguments.growth:
        faults.append(f"memory grew by {growth:.1f}%")
    if remaining := children(os.getpid()):
        faults.append(f"processes left: {remaining}")
    missing = (
        arguments.kills - outcome.done["trainer killed"],
        arguments.full - outcome.done["disk full"],
    )
    reasons: Counter[str] = Counter()
    for row in RunDirectory(runs[0]).metrics():
        reasons.update({k.split("/")[1]: int(v) for k, v in row.items() if k.startswith("reason/")})
    return {
        "settings": settings,
        "steps": arguments.steps,
        "disturbances": dict(outcome.done),
        "disturbances that found the run at its end": missing,
        "starts": outcome.starts,
        "ends": dict(outcome.ends),
        "proposals by verdict": dict(reasons.most_common()),
        "members": [digest[:16] for digest in digests],
        "memory of trainer and workers, MB, second and last tenth": [
            round(median(part) / 2**20, 1) for part in (early, late)
        ],
        "memory growth, percent": round(growth, 2),
        "seconds, calm and disturbed": [round(between - began), round(ended - between)],
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
    parser.add_argument("--folder", type=Path, help="an empty folder that keeps the runs")
    parser.add_argument("settings", nargs="*", help="overrides of both runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        figures = soak(arguments, folder)
    text = json.dumps(figures, indent=1)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")
    if figures["faults"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
