"""Tasks and executions per second: the referee beside AZR's executor.

One task is AZR's work on one proposal: validate the program with its determinism check (two
executions), then judge 8 different predicted inputs (eight executions). The tasks are AZR's seed
records (`--seeds FILE`); the predicted inputs are literals, so that every contender runs them all.
A task that meets a limit (time, memory, size) in any of its ten executions is left out: it would
compare the limits. AZR has none on memory: with one such task among 193, in which a program
grows a list for ever, AZR spends its 10 s timeout in the kernel and comes to 138 executions/s.

Every contender does the same tasks in this one run, in slices that alternate, so that a busy
machine slows all of them alike. Rates are medians over rounds; factors are taken within a round.

    AZR_HOME=... python perf/referee.py --seeds .../7b_coder_seed_io.jsonl
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from azr_population.referee import Judgement, Question, Reason, Referee, RefereeSettings
from azr_population.referee.sandbox import literal

DEADLINE = 10
ANSWERS = 8
EXECUTIONS = 2 + ANSWERS
SLICE = 96
"""Tasks that a contender does before the next one has its turn."""
LIMITS = {Reason.TIMEOUT, Reason.MEMORY, Reason.TOO_LARGE}
Contender = Callable[[Sequence[Question]], int]
"""Judges the tasks; returns the number of right answers."""


def read_tasks(path: Path) -> tuple[list[Question], dict[int, str]]:
    """The seed records that the referee finds valid, each with 8 distinct literal inputs.

    Also returns the records left out because of a limit: their number and the limit's name. The
    time limit is CPU time here, so that a busy machine chooses the same tasks.
    """
    records = [json.loads(line) for line in path.read_text().splitlines()]
    inputs = list(dict.fromkeys(record["input"] for record in records if _is_literal(record)))
    questions: dict[int, Question] = {}
    for number, record in enumerate(records):
        others = [text for text in inputs if text != record["input"]]
        first = number % max(len(others), 1)
        others = [*others[first:], *others[:first]][: ANSWERS - 1]
        if _is_literal(record) and len(others) == ANSWERS - 1:
            questions[number] = Question(
                "code_i",
                record["snippet"],
                (record["input"],),
                answers=(record["input"], *others),
                imports=tuple(record["imports"]),
            )
    with Referee(RefereeSettings(timeout=DEADLINE)) as referee:
        judged = dict(zip(questions, referee.judge(list(questions.values())), strict=True))
    met = {number: _limit(judgement) for number, judgement in judged.items()}
    left_out = {number: limit for number, limit in met.items() if limit}
    return [
        question
        for number, question in questions.items()
        if judged[number].execution.valid and not left_out.get(number)
    ], left_out


def _limit(judgement: Judgement) -> str:
    reasons = {judgement.execution.reason, *(grade.reason for grade in judgement.grades)}
    return ", ".join(sorted(str(reason) for reason in reasons & LIMITS))


def _is_literal(record: dict[str, str]) -> bool:
    text = record["input"]
    return "\n" not in text and literal.canonical_arguments(text) is not None


def with_referee(referee: Referee) -> Contender:
    """All tasks in one batch."""

    def run(tasks: Sequence[Question]) -> int:
        return sum(grade.solved for judged in referee.judge(tasks) for grade in judged.grades)

    return run


def with_executor(executor: Any) -> Contender:
    """One call per validation and per answer, as AZR's reward manager makes them."""

    def run(tasks: Sequence[Question]) -> int:
        right = 0
        if hasattr(executor, "_remembered"):  # our replacement's cache: every round executes all
            executor._remembered.clear()
        for task in tasks:
            program, imports = task.program, list(task.imports)
            _, output = executor.check_all(program, task.inputs[0], imports=imports)
            for answer in task.answers:
                right += bool(executor.eval_input_prediction(program, output, answer, imports))
        return right

    return run


def with_batches(executor: Any) -> Contender:
    """AZR's executor at its best: all snippets in one `batch_apply`, over all its workers."""
    from absolute_zero_reasoner.utils.code_utils import templates

    check = templates.CHECK_DETERMINISM_TEMPLATE.format
    attempt = templates.EVAL_INPUT_PREDICTION_TEMPLATE.format

    def run(tasks: Sequence[Question]) -> int:
        sources = ["\n".join([*task.imports, task.program]) for task in tasks]
        pairs = list(zip(sources, tasks, strict=True))
        outputs = executor.batch_apply([check(code=s, inputs=t.inputs[0]) for s, t in pairs])
        attempts = executor.batch_apply(
            [
                attempt(code=source, gold_output=output, agent_input=answer)
                for (source, task), (output, _) in zip(pairs, outputs, strict=True)
                for answer in task.answers
            ]
        )
        return sum(result == "True" for result, _ in attempts)

    return run


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Hides what AZR's workers print."""
    sys.stdout.flush()
    stdout = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(null)


def main() -> None:
    """Measures and prints JSON; `--out FILE` also writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=Path, required=True)
    parser.add_argument("--tasks", type=int, help="the first so many; all by default")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    workers = RefereeSettings(workers=arguments.workers).worker_count
    tasks, left_out = read_tasks(arguments.seeds)
    tasks = tasks[: arguments.tasks]
    limits = RefereeSettings(workers=workers, timeout=DEADLINE)
    referee = Referee(limits)
    contenders = {f"referee, {workers} workers": with_referee(referee)}
    if "AZR_HOME" in os.environ:
        sys.path.insert(0, os.environ["AZR_HOME"])
        from absolute_zero_reasoner.utils.code_utils import python_executor

        from azr_population.patches.referee_executor import RefereeExecutor

        python_executor.tqdm = _Quiet
        for count in sorted({1, workers}):
            azr = python_executor.PythonExecutor(timeout_length=DEADLINE, max_workers=count)
            contenders[f"AZR, {count} workers, call by call"] = with_executor(azr)
            contenders[f"AZR, {count} workers, in batches"] = with_batches(azr)
        drop_in = RefereeExecutor(timeout_length=DEADLINE, max_workers=workers)
        contenders["drop-in, the default, call by call"] = with_executor(drop_in)
    with silenced():
        rows = measure(contenders, tasks, arguments.rounds)
    compare(rows)
    result = {
        "command": " ".join(["perf/referee.py", *sys.argv[1:]]),
        "versions": versions(),
        "tasks": len(tasks),
        "seed records left out, with the limit that they meet": left_out,
        "rounds": arguments.rounds,
        "rows": rows,
    }
    print(json.dumps(result, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    referee.close()


def versions() -> dict[str, str]:
    """Versions, cores and processor."""
    versions_here = {"python": platform.python_version(), "kernel": platform.release()}
    versions_here["cores"] = str(len(os.sched_getaffinity(0)))
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            versions_here["processor"] = line.partition(":")[2].strip()
            break
    if "AZR_HOME" in os.environ:
        command = ["git", "-C", os.environ["AZR_HOME"], "log", "-1", "--format=%h"]
        commit = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        if commit:  # AZR may be a copy without its history
            versions_here["AZR"] = commit
        versions_here["pebble"] = metadata.version("pebble")
    return versions_here


class _Quiet:
    """Replaces AZR's progress bar."""

    def __init__(self, *arguments: object, **more: object) -> None:
        pass

    def update(self, count: int) -> None:
        pass

    def close(self) -> None:
        pass


def measure(
    contenders: Mapping[str, Contender], tasks: Sequence[Question], rounds: int
) -> list[dict[str, Any]]:
    """Each contender in turn, slice by slice.

    Measures wall-clock time and the CPU time of this process and its descendants, which a busy
    machine changes much less. A first round is warm-up.
    """
    rows: dict[str, dict[str, list[float]]] = {
        name: {"executions_per_second": [], "executions_per_cpu_second": []} for name in contenders
    }
    solved: Counter[str] = Counter()
    for number in range(rounds + 1):
        solved.clear()
        seconds, used = dict.fromkeys(contenders, 0.0), dict.fromkeys(contenders, 0.0)
        for start in range(0, len(tasks), SLICE):
            for name, run in contenders.items():
                began, spent = time.perf_counter(), cpu_seconds(os.getpid())
                solved[name] += run(tasks[start : start + SLICE])
                seconds[name] += time.perf_counter() - began
                used[name] += cpu_seconds(os.getpid()) - spent
        for name, rates in rows.items() if number else ():
            done = EXECUTIONS * len(tasks)
            rates["executions_per_second"].append(round(done / seconds[name], 1))
            rates["executions_per_cpu_second"].append(round(done / used[name], 1))
    return [
        {"contender": name, **rates, "answers_right_per_task": round(solved[name] / len(tasks), 3)}
        for name, rates in rows.items()
    ]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, its living descendants and all that they reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for thread in Path(f"/proc/{pid}/task").iterdir():
            if thread.name != str(pid):
                children += (thread / "children").read_text().split()
    except OSError:
        return 0.0
    seconds = sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
    return seconds + sum(cpu_seconds(int(child)) for child in children)


def compare(rows: Sequence[dict[str, Any]]) -> None:
    """Adds to each row its medians and its factors, round by round, against AZR's best row;
    without AZR, against the first row."""
    for key in ("executions_per_second", "executions_per_cpu_second"):
        azr = [row[key] for row in rows if row["contender"].startswith("AZR")] or [rows[0][key]]
        best = max(azr, key=statistics.median)
        for row in rows:
            row[f"median_{key}"] = round(statistics.median(row[key]), 1)
            factors = [a / b for a, b in zip(row[key], best, strict=True)]
            row[f"median_factor_{key}"] = round(statistics.median(factors), 3)


if __name__ == "__main__":
    main()
