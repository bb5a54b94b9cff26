"""This checkout against another one, in turns: the step of a local run, and its sampling.

    git worktree add ../old 8fd2eb3
    python perf/checkouts.py ../old [--rounds 5] [--steps 4] [KEY=VALUE ...]
    python perf/checkouts.py . --theirs engine.generate_batch_size=64

A step: the nano base's defaults with 4 teachers and 4 students, one thread, without evals. In a
round both play the same seed at the same time, so that other load affects both. Overrides are for
both, those of `--theirs` for the other one only.

The result is the median over rounds of the ratios of the median seconds, of a whole step and of its
sampling (proposals and attempts); above 1 ours is faster.
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

HERE = Path(__file__).resolve().parent.parent
OVERRIDES = ("population=4t4s", "engine.threads=1", "eval.every=0")
PARTS = {"step": ("time/step",), "sampling": ("time/propose", "time/solve")}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--theirs", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", type=Path)
    arguments, overrides = parser.parse_known_args()
    theirs = [*overrides, *arguments.theirs]
    sides = [(HERE, overrides), (arguments.checkout.resolve(), theirs)]
    rounds = [step_seconds(sides, arguments.steps, seed + 1) for seed in range(arguments.rounds)]
    result: dict[str, object] = {
        "command": " ".join(["python perf/checkouts.py", *sys.argv[1:]]),
        "against": _commit(arguments.checkout),
        "commit": _commit(HERE),
    }
    for part in PARTS:
        seconds = [[side[part] for side in both] for both in rounds]
        ratios = sorted(round(theirs / ours, 3) for ours, theirs in seconds)
        result[part] = {"ratio": median(ratios), "ratios": ratios, "seconds": seconds}
    print(json.dumps(result, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


def step_seconds(
    sides: list[tuple[Path, list[str]]], steps: int, seed: int
) -> list[dict[str, float]]:
    """Median seconds of a step and of its parts, ours and theirs; the first step warms up."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / name for name in ("ours", "theirs")]
        started = []
        for run, (source, overrides) in zip(runs, sides, strict=True):
            typed = ("train", *OVERRIDES, f"run.steps={steps + 1}", f"run.dir={run}")
            command = [sys.executable, "-m", "azr_population.cli", *typed, f"seed={seed}"]
            environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
            started.append(
                subprocess.Popen(
                    [*command, *overrides], cwd=folder, env=environment, stdout=subprocess.DEVNULL
                )
            )
        if any([process.wait() for process in started]):
            raise SystemExit("a run ended with an error, see above")
        records = [
            [json.loads(row) for row in (run / "metrics.jsonl").read_text("utf-8").splitlines()[1:]]
            for run in runs
        ]
    return [
        {
            part: round(median(sum(step[key] for key in keys) for step in played), 3)
            for part, keys in PARTS.items()
        }
        for played in records
    ]


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
