"""Do children of every operator recover? (PopuLoRA Fig 6, Appendix J, at nano scale)

    python recipes/paper/fig6_children/retention.py --out FOLDER --seeds 1 2 3 4
    python recipes/paper/fig6_children/figure.py FOLDER

For every seed s, parents s and s + 1 are trained from the base, each on its own tasks; the better
one is the first. The arms are a child by each of the eight operators, and four controls:
`untouched` (a copy of the better parent), `again` (the same copy with other random numbers in
sampling: its difference from `untouched` is noise), `reset` (an untrained member) and `noise` (a
random update with the better parent's norm). The last two have lost everything. All start with a
fresh optimizer, as children do in a run, and train for `--steps` steps on the same tasks. Each has
the same held-out eval before the first step and after others.

Every parent and every (seed, arm) is written to FOLDER when it is finished. The same command
continues after an interruption; several processes with other `--seeds` or `--arms` may share a
FOLDER.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from member_trainer import MemberTrainer

from azr_population.files import replacing_folder
from azr_population.referee import Referee
from azr_population.weights.adapter import Adapter, Factors
from azr_population.weights.breeding import all_operators, breed
from azr_population.weights.peft_folder import load_adapter, save_adapter

EVALUATE = (0, 2, 5, 8, 11, 14, 17, 20)
CONTROLS = ("untouched", "again", "reset", "noise")
ARMS = (*CONTROLS, *(op.name for op in all_operators() if op.code))
FREE = ("out", "seeds", "arms", "threads", "device")
"""Arguments that may differ between the processes of one folder."""


class Retention:
    """Trains parents and arms and writes them to the folder."""

    def __init__(self, arguments: argparse.Namespace, trainer: MemberTrainer) -> None:
        self.arguments = arguments
        self.trainer = trainer
        self._started = time.monotonic()

    def parent(self, number: int) -> tuple[Adapter, list[float]]:
        """A trained parent and its eval; trains it unless another process has."""
        folder = self.arguments.out / "parents" / str(number)
        with locked(folder.with_suffix(".lock")):
            if not (folder / "eval.json").exists():
                self._train_parent(number, folder)
        return load_adapter(folder), json.loads((folder / "eval.json").read_text())["solved"]

    def _train_parent(self, number: int, folder: Path) -> None:
        self.trainer.write(self.trainer.fresh[number])
        rates = []
        for step in range(1, self.arguments.parent_steps + 1):
            rates.append(self.trainer.teach(f"parent {number}", f"parent luck {number}", step))
            if step % 20 == 0:
                self.say(f"parent {number}, step {step}: solves {sum(rates[-20:]) / 20:.3f}")
        solved = self.trainer.evaluate()
        with replacing_folder(folder) as place:
            save_adapter(self.trainer.read(), place, self.trainer.base)
        write(folder / "eval.json", {"solved": rounded(solved)})
        self.say(f"parent {number}: eval {sum(solved) / len(solved):.4f}")

    def run_arm(self, seed: int, arm: str) -> None:
        """Trains and evaluates one arm of one seed, unless it is finished."""
        path = self.arguments.out / "arm_runs" / f"{seed}_{arm}.json"
        if path.exists():
            return
        parents = [self.parent(seed), self.parent(seed + 1)]
        parents.sort(key=lambda parent: -sum(parent[1]))
        (better, level), (weaker, _) = parents
        options: dict[str, Any] = {}
        if arm == "reset":
            child = self.trainer.fresh[seed]
        elif arm == "noise":
            child = noise(better, self.trainer.streams.torch("noise", seed))
        elif arm in CONTROLS:
            child = better
        else:
            generator = self.trainer.streams.torch(f"breed {arm}", seed)
            child, breeding = breed({arm: 1.0}, [better, weaker], generator)
            options = breeding.options
        self.trainer.write(child)
        evals = {}
        for step in range(self.arguments.steps + 1):
            if step:
                self.trainer.train(f"child {seed}", f"child luck {seed} {arm}", step)
            if step in EVALUATE or step == self.arguments.steps:
                evals[step] = rounded(self.trainer.evaluate())
        arm_run = {"seed": seed, "arm": arm, "options": options, "parent": level, "evals": evals}
        write(path, arm_run)
        scores = [sum(evals[step]) / len(level) for step in (0, self.arguments.steps)]
        self.say(
            f"seed {seed}, {arm}: parent {sum(level) / len(level):.4f}, child {scores[0]:.4f}, "
            f"after {self.arguments.steps} steps {scores[1]:.4f}"
        )

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._started:6.0f} s  {text}", flush=True)


def noise(adapter: Adapter, generator: torch.Generator) -> Adapter:
    """Random factors whose update B A has the adapter's norm in each layer."""
    factors = {}
    for name, pair in adapter.factors.items():
        A, B = (torch.randn(part.shape, generator=generator).to(part) for part in (pair.A, pair.B))
        size = (pair.B @ pair.A).norm() / (B @ A).norm()
        factors[name] = Factors(A * size.sqrt(), B * size.sqrt())
    return Adapter(adapter.spec, factors)


def rounded(values: list[float]) -> list[float]:
    return [round(value, 5) for value in values]


def write(path: Path, content: Any) -> None:
    """Writes the file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
    os.replace(temporary, path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock that one process at a time can have; a crash releases it too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def check_settings(arguments: argparse.Namespace, trainer: MemberTrainer) -> None:
    """Writes the folder's settings, or checks that they are equal to the existing ones."""
    settings = {key: value for key, value in vars(arguments).items() if key not in FREE}
    settings["base_sha256"] = trainer.base_sha256()
    base = trainer.evaluate()
    settings["base_eval"] = round(sum(base) / len(base), 5)
    path = arguments.out / "settings.json"
    with locked(arguments.out / ".lock"):
        if path.exists():
            existing = json.loads(path.read_text())
            for key, value in settings.items():
                if existing.get(key) != value and key != "base_eval":
                    sys.exit(
                        f"{path} has {key}={existing.get(key)}, not {value}: give another --out"
                    )
        else:
            write(path, settings)


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--parent-steps", type=int, default=100)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=48, help="tasks per member and step")
    parser.add_argument("--samples", type=int, default=8, help="attempts per task")
    parser.add_argument("--baseline", default="positive_only", help="population.student_advantage")
    parser.add_argument("--eval-tasks", type=int, default=1200, help="tasks of the nano eval")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--micro-batch-tokens", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--base", help="a Hugging Face folder instead of the nano base")
    parser.add_argument("--seed-file", help="AZR's *_seed_io.jsonl, needed with --base")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    arguments = parser.parse_args(words)
    if bool(arguments.base) != bool(arguments.seed_file):
        parser.error("--base and --seed-file go together")
    if min(arguments.seeds) < 1 or max(arguments.seeds) > 9:
        parser.error("--seeds are numbers from 1 to 9")
    return arguments


def main() -> None:
    arguments = arguments_of()
    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with Referee() as referee:
        # The same number of untrained members in every process, so that they are equal.
        trainer = MemberTrainer(arguments, referee, members=11)
        check_settings(arguments, trainer)
        retention = Retention(arguments, trainer)
        for seed in arguments.seeds:
            for arm in arguments.arms:
                retention.run_arm(seed, arm)


if __name__ == "__main__":
    main()
