"""CPU seconds of the referee against another commit's, on the same tasks:

    git worktree add ../old 13bf343
    python benchmarks/referee_checkouts.py ../old --seeds .../7b_coder_seed_io.jsonl

A task is one of AZR's seed records: validated (two executions), and one answer judged, its own
input or output. In a round both checkouts judge the same records, in turns first. Counted are the
CPU seconds of the process and of all that it started, from opening a referee to closing it. What
counts is the median over rounds of the ratios: above 1, ours takes less.
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
    """In the process of one checkout: CPU seconds and verdicts."""
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
        told = [
            [str(one.execution.reason), *(str(grade.reason) for grade in one.grades)]
            for one in referee.stream(questions)
        ]
    return {"cpu": _cpu() - before, "verdicts": told}


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Judge in both and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seeds", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=128, help="of a round")
    parser.add_argument("--slice", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.slice:
        print(json.dumps(judge(given.seeds, *given.slice)))
        return
    checkouts = {"ours": HERE, "theirs": given.checkout.resolve()}
    seconds: dict[str, list[float]] = {name: [] for name in checkouts}
    different = 0
    for number in range(given.rounds):
        told = {}
        for name in sorted(checkouts, reverse=bool(number % 2)):
            done = subprocess.run(
                [
                    *(sys.executable, __file__, str(given.checkout), "--seeds"),
                    *(str(given.seeds.resolve()), "--slice"),
                    *(str(number * given.tasks), str(given.tasks)),
                ],
                env={**os.environ, "PYTHONPATH": str(checkouts[name])},
                capture_output=True,
                check=True,
            )
            told[name] = json.loads(done.stdout)
            seconds[name].append(round(told[name]["cpu"], 3))
        different += sum(
            a != b for a, b in zip(*(one["verdicts"] for one in told.values()), strict=True)
        )
    pairs = zip(seconds["theirs"], seconds["ours"], strict=True)
    ratios = sorted(round(theirs / ours, 3) for theirs, ours in pairs)
    figures = {
        "ratio": median(ratios),
        "ratios": ratios,
        "cpu seconds": seconds,
        "tasks of a round": given.tasks,
        "different verdicts": different,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
