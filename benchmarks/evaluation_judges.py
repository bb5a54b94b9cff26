"""Our judge against evalplus's own evaluator: the same MBPP+ completions, two processes each.

    python benchmarks/evaluation_judges.py --data DIR [--every 1] [--repeat 3] [--json FILE]

Ten made-up completions of each problem (`evaluation_samples.py`), judged by `evalplus.evaluate
--parallel 2` and by ours in turns, each as a command of its own with what is right known already.
Wall clock and processor time of the command and all it starts. Verdicts that differ are listed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from evaluation_samples import samples

from azr_population import versions
from azr_population.measuring.evaluation.benchmark import chosen
from azr_population.measuring.evaluation.data import locate, read

PROCESSES = 2


def judge(data: Path, completions: Path, out: Path) -> None:
    """What the measured command of ours does: reads, judges, writes."""
    from azr_population.measuring.evaluation.grading.functions import FunctionJudge
    from azr_population.measuring.evaluation.grading.references import References

    problems = {problem.id: problem for problem in read(chosen("mbpp_plus")[0], data).problems}
    rows = [json.loads(line) for line in completions.read_text().splitlines()]
    asked = [(problems[row["task_id"]], row["solution"]) for row in rows]
    with FunctionJudge(References(workers=PROCESSES), PROCESSES) as judge:
        judged = judge.judge(asked)  # type: ignore[arg-type]
    out.write_text(json.dumps([[v.passed, v.reason, v.base_passed] for v in judged]))


def timed(command: list[str], environment: dict[str, str]) -> dict[str, float]:
    """Runs a command; seconds by the wall and of processors."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    quiet = subprocess.DEVNULL
    subprocess.run(command, env=environment, check=True, stdout=quiet, stderr=quiet)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": time.perf_counter() - began, "cpu": used}


def evalplus_verdicts(path: Path) -> dict[tuple[str, str], list[Any]]:
    """By (task, solution): passed, base passed."""
    found = json.loads(path.read_text())["eval"]
    return {
        (task, row["solution"]): [
            row["base_status"] == row["plus_status"] == "pass",
            row["base_status"] == "pass",
        ]
        for task, rows in found.items()
        for row in rows
    }


def main() -> None:
    """Prints times, their ratio and the verdicts that differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1, help="take each n-th problem")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--judge", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.judge:
        judge(arguments.data, *arguments.judge)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = compared(arguments, Path(folder))
    print(json.dumps(found, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


def compared(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Both judges in turns on the same completions."""
    benchmark = chosen("mbpp_plus")[0]
    (file,) = locate(benchmark, arguments.data)
    lines = file.read_text().splitlines(keepends=True)[:: arguments.every]
    part = folder / "MbppPlus.jsonl"
    part.write_text("".join(lines))
    problems = read(benchmark, folder).problems
    completions, ours, results = (
        folder / n for n in ("s.jsonl", "ours.json", "s_eval_results.json")
    )
    rows = [
        {"task_id": problem.id, "solution": solution, "kind": kind}
        for problem in problems
        for kind, solution in samples(problem)  # type: ignore[arg-type]
    ]
    completions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    environment = {**os.environ, "MBPP_OVERRIDE_PATH": str(part)}
    mine = [sys.executable, __file__, "--data", str(folder), "--judge", str(completions), str(ours)]
    theirs = [sys.executable, "-m", "evalplus.evaluate", "--dataset", "mbpp"]
    theirs += ["--samples", str(completions), "--parallel", str(PROCESSES)]
    warm_up(problems, folder, environment)
    times: dict[str, list[dict[str, float]]] = {"evalplus": [], "ours": []}
    for _ in range(arguments.repeat):
        results.unlink(missing_ok=True)
        times["evalplus"].append(timed(theirs, environment))
        times["ours"].append(timed(mine, environment))
        print({who: taken[-1] for who, taken in times.items()}, file=sys.stderr, flush=True)
    differing = []
    reference = evalplus_verdicts(results)
    for row, (passed, reason, base) in zip(rows, json.loads(ours.read_text()), strict=True):
        says = reference[row["task_id"], row["solution"]]
        if says != [passed, base]:
            # Not the solution: it quotes the benchmark, and is made again from these two.
            about = {key: row[key] for key in ("task_id", "kind")}
            differing.append({**about, "ours": [passed, base, reason], "evalplus": says})
    middle = {
        who: {
            unit: round(median(taken[unit] for taken in all_taken), 2) for unit in ("wall", "cpu")
        }
        for who, all_taken in times.items()
    }
    return {
        "problems": len(problems),
        "completions": len(rows),
        "passed": sum(passed for passed, _, _ in json.loads(ours.read_text())),
        "seconds": times,
        "medians": middle,
        "ratio": {u: round(middle["evalplus"][u] / middle["ours"][u], 2) for u in ("wall", "cpu")},
        "agree": 1 - len(differing) / len(rows),
        "differ": differing,
        "load": os.getloadavg(),
        "environment": versions.environment("evalplus"),
    }


def warm_up(problems: list[Any], folder: Path, environment: dict[str, str]) -> None:
    """Lets both find out what is right, which they keep."""
    first = folder / "w.jsonl"
    first.write_text(
        "".join(json.dumps({"task_id": p.id, "solution": "pass"}) + "\n" for p in problems)
    )
    theirs = [sys.executable, "-m", "evalplus.evaluate", "--dataset", "mbpp"]
    timed([*theirs, "--samples", str(first), "--parallel", str(PROCESSES)], environment)
    mine = [sys.executable, __file__, "--data", str(folder), "--judge", str(first)]
    timed([*mine, str(folder / "w.json")], environment)


if __name__ == "__main__":
    main()
