"""This checkout against another one, in turns: a local run's step, or the referee.

    git worktree add ../old 8fd2eb3
    python benchmarks/checkouts.py ../old [--rounds 5] [--steps 4] [KEY=VALUE ...]
    python benchmarks/checkouts.py . --theirs engine.share_prefix=false
    python benchmarks/checkouts.py ../old --seeds .../7b_coder_seed_io.jsonl

A step: the nano base with 4 teachers and 4 students, batches of 48, all three task types, one
thread, without evals. In a round both play the same seed at the same time, so that other load
affects both. Overrides are for both, those of `--theirs` for the other one only.

With `--seeds`: 128 of AZR's seed records a round, each validated (two executions) and one answer
judged, its own input or output.

The result is the median over rounds of the ratios, above 1 ours is faster: of the median seconds of
a step, or of the CPU seconds of the referee's process and its children.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent.parent
OVERRIDES = ("population=4t4s", "engine.threads=1", "eval.every=0")
TASKS = 128


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seeds", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--theirs", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--judge", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    arguments, overrides = parser.parse_known_args()
    if arguments.judge is not None:
        print(json.dumps(judge(arguments.seeds, arguments.judge)))
        return
    play = referee_seconds if arguments.seeds else step_seconds
    rounds = [play(arguments, number, overrides) for number in range(arguments.rounds)]
    ratios = sorted(round(theirs / ours, 3) for ours, theirs in rounds)
    result = {
        "command": " ".join(["python benchmarks/checkouts.py", *sys.argv[1:]]),
        "against": _commit(arguments.checkout),
        "commit": _commit(HERE),
        "ratio": median(ratios),
        "ratios": ratios,
        "seconds": [[round(seconds, 3) for seconds in both] for both in rounds],
    }
    print(json.dumps(result, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


def step_seconds(
    arguments: argparse.Namespace, number: int, overrides: list[str]
) -> tuple[float, float]:
    """Median seconds of a step, ours and theirs; the first step warms up."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / "ours", Path(folder) / "theirs"]
        started = []
        for run, source, more in zip(
            runs, _sources(arguments), ([], arguments.theirs), strict=True
        ):
            typed = ("train", *OVERRIDES, f"run.steps={arguments.steps + 1}", f"run.dir={run}")
            command = [sys.executable, "-m", "azr_population.cli", *typed, f"seed={number + 1}"]
            started.append(
                subprocess.Popen(
                    [*command, *overrides, *more],
                    cwd=folder,
                    env=_environment(source),
                    stdout=subprocess.DEVNULL,
                )
            )
        if any([process.wait() for process in started]):
            raise SystemExit("a run ended with an error, see above")
        records = [(run / "metrics.jsonl").read_text("utf-8").splitlines() for run in runs]
        ours, theirs = (
            median(json.loads(row)["time/step"] for row in rows[1:]) for rows in records
        )
        return ours, theirs


def referee_seconds(
    arguments: argparse.Namespace, number: int, overrides: list[str]
) -> tuple[float, float]:
    """CPU seconds of a slice of the seeds, ours and theirs; they take turns in going first."""
    results: dict[Path, dict[str, Any]] = {}
    sources = _sources(arguments)
    for source in sorted(sources, reverse=bool(number % 2)):
        typed = [".", "--seeds", str(arguments.seeds.resolve()), "--judge", str(number * TASKS)]
        command = [sys.executable, __file__, *typed]
        done = subprocess.run(command, env=_environment(source), capture_output=True, check=True)
        results[source] = json.loads(done.stdout)
    ours, theirs = (results[source] for source in sources)
    if ours["verdicts"] != theirs["verdicts"]:
        raise SystemExit(f"the verdicts of round {number} differ")
    return ours["cpu"], theirs["cpu"]


def judge(seeds: Path, first: int) -> dict[str, Any]:
    """CPU seconds and verdicts of one checkout, in a separate process."""
    from azr_population.referee import Question, Referee, RefereeSettings

    records = [json.loads(line) for line in seeds.read_text("utf-8").splitlines()]
    questions = []
    for number in range(first, first + TASKS):
        record = records[number % len(records)]
        kind, answer = ("code_i", "input") if number % 2 else ("code_o", "output")
        texts = (record["snippet"], (record["input"],), (), (record[answer],))
        questions.append(Question(kind, *texts, tuple(record["imports"])))
    before = _cpu()
    with Referee(RefereeSettings(workers=2, cpu_seconds=0.5)) as referee:
        verdicts = [
            [str(judged.execution.reason), *(str(grade.reason) for grade in judged.grades)]
            for judged in referee.stream(questions)
        ]
    return {"cpu": _cpu() - before, "verdicts": verdicts}


def _cpu() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _sources(arguments: argparse.Namespace) -> tuple[Path, Path]:
    return HERE, arguments.checkout.resolve()


def _environment(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
