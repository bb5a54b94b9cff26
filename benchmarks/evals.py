"""CPU seconds and verdicts of `azr-population benchmark`, beside those of an older checkout.

    python benchmarks/evals.py RUN --data DIR [--limit 32] [--max-tokens 96] [--before CHECKOUT]

Asks RUN's base and members MBPP+, greedily, in a process of its own. `--before` names a checkout
whose command was still `evaluate` (13bf343 and before), which is asked the same first. What
canonical solutions return is computed before the clock starts; the CPU seconds are those of the
command and all its children.
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
from typing import Any


def measured(command: list[str], checkout: Path) -> float:
    """CPU seconds of `python -m azr_population.cli` with these arguments in a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = [sys.executable, "-m", "azr_population.cli", *command]
    subprocess.run(program, cwd=checkout, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def verdicts_before(records: Path) -> dict[str, bool]:
    """`model problem` -> whether it was solved, of the older command."""
    figures = json.loads((records / "figures.json").read_text())
    (about,) = figures["benchmarks"]
    return {
        f"{model} {problem}": bool(right)
        for model, counts in figures["right"]["mbpp_plus"].items()
        for problem, right in zip(about["problems"], counts, strict=True)
    }


def verdicts_after(logs: Path) -> dict[str, bool]:
    """The same of Inspect's logs."""
    from inspect_ai.log import list_eval_logs, read_eval_log

    made = {}
    for info in list_eval_logs(str(logs)):
        log = read_eval_log(info)
        folder = Path(log.eval.model).name
        name = folder if folder.startswith(("teacher_", "student_", "agent_")) else "base"
        for sample in log.samples or []:
            (score,) = (sample.scores or {}).values()
            made[f"{name} {sample.id}"] = score.value == "C"
    return made


def fill_references(data: str, limit: int) -> None:
    """Computes what is right, outside the clock."""
    from azr_population.evals.benchmarks import read_benchmark
    from azr_population.evals.grading.functions import References

    References().of(read_benchmark("mbpp_plus", data).problems[:limit])  # type: ignore[arg-type]


def main() -> None:
    """Prints the figures, and writes them where `--json` says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--data", required=True)
    parser.add_argument("--limit", type=int, default=32)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--records", type=Path, help="keeps completions and logs there")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    run, data = str(arguments.run.resolve()), str(Path(arguments.data).resolve())
    limits = ["--limit", str(arguments.limit), "--max-tokens", str(arguments.max_tokens)]
    asked = [run, "--benchmarks", "mbpp_plus", "--data", data, *limits]
    made: dict[str, Any] = {"limit": arguments.limit, "max_tokens": arguments.max_tokens}
    with tempfile.TemporaryDirectory() as folder:
        place = arguments.records.resolve() if arguments.records else Path(folder)
        fill_references(data, arguments.limit)
        if arguments.before:
            records = place / "before"
            command = ["evaluate", *asked, "--records", str(records)]
            made["cpu_seconds_before"] = measured(command, arguments.before.resolve())
            before = verdicts_before(records)
        logs = place / "after"
        command = ["benchmark", *asked, "--logs", str(logs), "--display", "plain"]
        made["cpu_seconds"] = measured(command, Path(__file__).parents[1])
        after = verdicts_after(logs)
    made |= {"verdicts": len(after), "solved": sum(after.values())}
    if arguments.before:
        made["ratio"] = made["cpu_seconds"] / made["cpu_seconds_before"]
        made["solved_before"] = sum(before.values())
        made["differ"] = sorted(
            key for key in before.keys() | after.keys() if before.get(key) != after.get(key)
        )
    print(json.dumps(made, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
