"""CPU seconds of the referee against another commit's, on the same tasks:

    git worktree add ../old 13bf343
    python benchmarks/referee_checkouts.py ../old --seeds .../7b_coder_seed_io.jsonl

A task is one of AZR's seed records: validated (two executions), and one answer judged, its own
input or output. In a round both checkouts judge the same records and take turns in going first. CPU
seconds are those of the process and its children, from opening a referee to closing it. The result
is the median over rounds of the ratios: above 1, ours is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent.parent


def judge(seeds: Path, first: int, count: int) -> dict[str, Any]:
    """CPU seconds and verdicts of one checkout, in its own process."""
    from azr_population.referee import Question, Referee, RefereeSettings

    records = [json.loads(line) for line in seeds.read_text("utf-8").splitlines()]
    questions = []
    for number in range(first, first + count):
        one = records[number % len(records)]
        kind, answer = ("code_i", "input") if number % 2 else ("code_o", "output")
        imports = tuple(one["imports"])
        questions.append(
            Question(kind, one["snippet"], (one["input"],), (), (one[answer],), imports)
        )
    before = _cpu()
    with Referee(RefereeSettings(workers=2, cpu_seconds=0.5)) as referee:
        verdicts = [
            [str(one.execution.reason), *(str(grade.reason) for grade in one.grades)]
            for one in referee.stream(questions)
        ]
    return {"cpu": _cpu() - before, "verdicts": verdicts}


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main() -> None:
    """Judge in both and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seeds", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=128, help="of a round")
    parser.add_argument("--slice", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.slice:
        print(json.dumps(judge(arguments.seeds, *arguments.slice)))
        return
    checkouts = {"ours": HERE, "theirs": arguments.checkout.resolve()}
    seconds: dict[str, list[float]] = {name: [] for name in checkouts}
    different = 0
    for number in range(arguments.rounds):
        results = {}
        for name in sorted(checkouts, reverse=bool(number % 2)):
            done = subprocess.run(
                [
                    *(sys.executable, __file__, str(arguments.checkout), "--seeds"),
                    *(str(arguments.seeds.resolve()), "--slice"),
                    *(str(number * arguments.tasks), str(arguments.tasks)),
                ],
                env={**os.environ, "PYTHONPATH": str(checkouts[name])},
                capture_output=True,
                check=True,
            )
            results[name] = json.loads(done.stdout)
            seconds[name].append(round(results[name]["cpu"], 3))
        different += sum(
            a != b
            for a, b in zip(*(result["verdicts"] for result in results.values()), strict=True)
        )
    pairs = zip(seconds["theirs"], seconds["ours"], strict=True)
    ratios = sorted(round(theirs / ours, 3) for theirs, ours in pairs)
    figures = {
        "ratio": median(ratios),
        "ratios": ratios,
        "cpu seconds": seconds,
        "tasks of a round": arguments.tasks,
        "different verdicts": different,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
