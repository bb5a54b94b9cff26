"""Seconds of a local run's step against another commit's: python benchmarks/step.py CHECKOUT

    git worktree add ../old 8fd2eb3
    python benchmarks/step.py ../old [--rounds 5] [--steps 4] [--json FILE] [population=4t4s ...]

Runs the nano base with 4 teachers and 4 students, batches of 48, all three task types, one thread,
without evals. In a round both checkouts run the same seed at the same time, so that other load
affects both; further arguments are overrides for both. The result is the median over rounds of the
ratio of their median steps: above 1, ours is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from azr_population.versions import installed

HERE = Path(__file__).resolve().parent.parent
OVERRIDES = ("population=4t4s", "engine.threads=1", "eval.every=0")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--json", type=Path)
    arguments, overrides = parser.parse_known_args()
    rounds = [
        play_both(arguments.checkout.resolve(), arguments.steps, seed, overrides)
        for seed in range(1, arguments.rounds + 1)
    ]
    ratios = sorted(round(theirs / ours, 2) for ours, theirs in rounds)
    result = {
        "command": f"python benchmarks/step.py {arguments.checkout.name} --rounds "
        f"{arguments.rounds} --steps {arguments.steps} {' '.join(overrides)}".strip(),
        "against": git(arguments.checkout, "rev-parse", "--short", "HEAD"),
        "commit": git(HERE, "rev-parse", "--short", "HEAD"),
        **{package: installed(package) for package in ("torch", "transformers")},
        "ratio": median(ratios),
        "ratios": ratios,
        "seconds": [[round(each, 2) for each in both] for both in rounds],
    }
    print(json.dumps(result, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


def play_both(checkout: Path, steps: int, seed: int, overrides: list[str]) -> tuple[float, float]:
    """Median seconds of a step, ours and theirs; the first step warms up."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / "ours", Path(folder) / "theirs"]
        started = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "azr_population.cli", "train"),
                    *OVERRIDES,
                    *(f"run.steps={steps + 1}", f"run.dir={run}", f"seed={seed}", *overrides),
                ],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
                stdout=subprocess.DEVNULL,
            )
            for run, source in zip(runs, (HERE, checkout), strict=True)
        ]
        if any(process.wait() for process in started):
            raise SystemExit("a run ended with an error, see above")
        ours, theirs = (median(seconds(run)[1:]) for run in runs)
        return ours, theirs


def seconds(run: Path) -> list[float]:
    """Seconds of each step, from the records."""
    lines = (run / "metrics.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["time/step"] for line in lines]


def git(checkout: Path, *what: str) -> str:
    """What git says about a checkout."""
    output = subprocess.run(
        ["git", "-C", checkout, *what], capture_output=True, text=True, check=True
    )
    return output.stdout.strip()


if __name__ == "__main__":
    main()
