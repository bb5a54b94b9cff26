"""Tasks and executions per second: the referee beside AZR's executor and a process per program.

One task is AZR's work on one proposal: validate the program with its determinism check (two
executions), then judge 8 different predicted inputs (eight executions). The tasks are AZR's seed
records (`--seeds FILE`); the predicted inputs are literals, so that every contender runs them all.
A task that meets a limit (time, memory, size) in any of its ten executions is left out: it would
compare the limits. AZR has none on memory: with one such task among 193, in which a program
grows a list for ever, AZR spends its 10 s timeout in the kernel and comes to 138 executions/s.

Every contender does the same tasks in this one run, in slices that alternate, so that a busy
machine slows all of them alike. Rates are medians over rounds; factors are taken within a round.

    AZR_HOME=... python benchmarks/referee.py --seeds .../7b_coder_seed_io.jsonl
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

from azr_population.referee import Judgement, Question, Reason, Referee, RefereeSettings
from azr_population.referee.sandbox import literal

DEADLINE = 10
ANSWERS = 8
EXECUTIONS = 2 + ANSWERS
K_ROW = "AZR, 8 answers/snippet"
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
        others = [text for text in inputs if text != record["input"]][number : number + 7]
        if _is_literal(record) and len(others) == ANSWERS - 1:
            questions[number] = Question(
                "code_i",
                record["snippet"],
                (record["input"],),
                answers=(record["input"], *others),
                imports=tuple(record["imports"]),
            )
    with Referee(RefereeSettings(timeout=DEADLINE, cpu_seconds=1.0)) as referee:
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
    try:
        literal.parse_arguments(record["input"])
    except literal.NotLiteral:
        return False
    return "\n" not in record["input"]


def with_referee(referee: Referee) -> Contender:
    """All tasks in one batch."""

    def run(tasks: Sequence[Question]) -> int:
        return sum(grade.solved for judged in referee.judge(tasks) for grade in judged.grades)

    return run


def with_executor(executor: Any, together: bool = False) -> Contender:
    """One call per validation and per answer, as AZR's reward manager makes them; or all answers to
    a task in one call, as with AZR's `batched_estimate`."""

    def run(tasks: Sequence[Question]) -> int:
        right = 0
        if hasattr(executor, "_remembered"):  # our replacement's cache: every round executes all
            executor._remembered.clear()
        for task in tasks:
            program, imports, answers = task.program, list(task.imports), list(task.answers)
            _, output = executor.check_all(program, task.inputs[0], imports=imports)
            if not together:
                scores = [
                    executor.eval_input_prediction(program, output, answer, imports)
                    for answer in answers
                ]
                right += sum(map(bool, scores))
                continue
            with contextlib.suppress(AssertionError):  # AZR's, where one answer ends them all
                scores = executor.eval_k_input_prediction(program, output, answers, imports)
                right += sum(map(bool, scores))
        return right

    return run


def with_batches(executor: Any, together: bool = False) -> Contender:
    """AZR's executor at its best: all snippets in one `batch_apply`, over all its workers; with
    `together` a task's eight answers in one snippet, where one that hangs or exits costs its
    neighbours their verdicts."""
    from absolute_zero_reasoner.utils.code_utils import templates

    def snippets(source: str, output: str, answers: Sequence[str]) -> list[str]:
        if together:
            make = templates.EVAL_K_INPUT_PREDICTION_TEMPLATE
            return [make(code=source, gold_output=output, k_agent_inputs=list(answers))]
        make = templates.EVAL_INPUT_PREDICTION_TEMPLATE.format
        return [make(code=source, gold_output=output, agent_input=answer) for answer in answers]

    def run(tasks: Sequence[Question]) -> int:
        sources = ["\n".join([*task.imports, task.program]) for task in tasks]
        check = templates.CHECK_DETERMINISM_TEMPLATE.format
        pairs = list(zip(sources, tasks, strict=True))
        outputs = executor.batch_apply([check(code=s, inputs=t.inputs[0]) for s, t in pairs])
        attempts = executor.batch_apply(
            [
                snippet
                for (source, task), (output, _) in zip(pairs, outputs, strict=True)
                for snippet in snippets(source, output, task.answers)
            ]
        )
        return sum(result.count("True") for result, _ in attempts)

    return run


_ONE = """
import sys
source, call = sys.argv[1:]
space = {}
exec(source, space)
print(repr(eval(call, space)))
"""


def with_processes() -> Contender:
    """A fresh interpreter for each execution."""

    def execute(source: str, text: str) -> str:
        command = [sys.executable, "-I", "-S", "-c", _ONE, source, f"f({text})"]
        return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE).stdout

    def run(tasks: Sequence[Question]) -> int:
        right = 0
        for task in tasks:
            source = "\n".join([*task.imports, task.program])
            gold = execute(source, task.inputs[0])
            execute(source, task.inputs[0])
            right += sum(execute(source, answer) == gold for answer in task.answers)
        return right

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
    """Measure and print a table; `--out FILE` also writes it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    workers = RefereeSettings(workers=arguments.workers).worker_count
    tasks, left_out = read_tasks(arguments.seeds)
    limits = RefereeSettings(workers=workers, timeout=DEADLINE)
    ways = (
        (f"referee, {workers} workers, the default", limits, 1),
        ("referee, no two tasks share a child", replace(limits, share=1), 1),
        ("referee, a child per execution", replace(limits, child_per_call=True), 4),
    )
    referees = [Referee(settings) for _, settings, _ in ways]
    contenders: list[tuple[str, Contender, int]] = [
        (name, with_referee(referee), thinned)
        for (name, _, thinned), referee in zip(ways, referees, strict=True)
    ]
    if "AZR_HOME" in os.environ:
        sys.path.insert(0, os.environ["AZR_HOME"])
        from absolute_zero_reasoner.utils.code_utils import python_executor

        from azr_population.patches.referee_executor import RefereeExecutor

        python_executor.tqdm = _Quiet
        for count in sorted({1, workers}):
            azr = python_executor.PythonExecutor(timeout_length=DEADLINE, max_workers=count)
            contenders += [
                (f"AZR, {count} workers, call by call", with_executor(azr), 1),
                (f"AZR, {count} workers, in batches", with_batches(azr), 1),
                (f"{K_ROW}, {count} workers, call by call", with_executor(azr, True), 1),
                (f"{K_ROW}, {count} workers, in batches", with_batches(azr, True), 1),
            ]
        drop_in = RefereeExecutor(timeout_length=DEADLINE, max_workers=workers)
        contenders += [
            ("drop-in, the default, call by call", with_executor(drop_in), 1),
            ("drop-in, the default, 8 answers a call", with_executor(drop_in, True), 1),
        ]
    contenders.append(("a process per execution", with_processes(), 16))
    with silenced():
        rows = measure(contenders, tasks, arguments.rounds)
    compare(rows)
    result = {
        "command": " ".join(["benchmarks/referee.py", *sys.argv[1:]]),
        "versions": versions(),
        "tasks": len(tasks),
        "seed records left out, with the limit that they meet": left_out,
        "rounds": arguments.rounds,
        "rows": rows,
    }
    print(report(result))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    for referee in referees:
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
        versions_here["AZR"] = subprocess.run(
            command, capture_output=True, text=True
        ).stdout.strip()
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
    contenders: Sequence[tuple[str, Contender, int]], tasks: Sequence[Question], rounds: int
) -> list[dict[str, object]]:
    """Each contender in turn, slice by slice; a slow one gets every n-th task only.

    Measures wall-clock time and the CPU time of this process and its descendants, which a busy
    machine changes much less. A first round is warm-up.
    """
    names = [name for name, _, _ in contenders]
    wall: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    right = dict.fromkeys(names, 0.0)
    for number in range(rounds + 1):
        seconds, used = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        done, solved = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
        for start in range(0, len(tasks), SLICE):
            for name, run, thinned in contenders:
                share = tasks[start : start + SLICE : thinned]
                began, spent = time.perf_counter(), cpu_seconds(os.getpid())
                solved[name] += run(share)
                seconds[name] += time.perf_counter() - began
                used[name] += cpu_seconds(os.getpid()) - spent
                done[name] += len(share)
        for name in names if number else ():
            wall[name].append(EXECUTIONS * done[name] / seconds[name])
            cpu[name].append(EXECUTIONS * done[name] / used[name])
            right[name] = solved[name] / done[name]
    return [
        {
            "contender": name,
            "executions_per_second": [round(rate, 1) for rate in wall[name]],
            "executions_per_cpu_second": [round(rate, 1) for rate in cpu[name]],
            "answers_right_per_task": round(right[name], 3),
        }
        for name in names
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


def compare(rows: Sequence[dict[str, object]]) -> None:
    """Add to each row its medians and its factors, round by round, against AZR's best row.

    AZR's best row with one answer per snippet, AZR's default; without AZR, the first row.
    """
    for key in ("executions_per_second", "executions_per_cpu_second"):
        rates = [row[key] for row in rows]
        azr = [n for n, row in enumerate(rows) if _is_reference(row)] or [0]
        best = max((rates[n] for n in azr), key=statistics.median)  # type: ignore[type-var]
        for row, mine in zip(rows, rates, strict=True):
            row[f"median_{key}"] = round(statistics.median(mine), 1)  # type: ignore[type-var]
            factors = [a / b for a, b in zip(mine, best, strict=True)]  # type: ignore[call-overload]
            row[f"median_factor_{key}"] = round(statistics.median(factors), 3)


def _is_reference(row: dict[str, object]) -> bool:
    name = str(row["contender"])
    return name.startswith("AZR") and not name.startswith(K_ROW)


def report(result: dict[str, object]) -> str:
    """The table."""
    lines = [
        f"{result['tasks']} seed tasks, {EXECUTIONS} executions each; medians of "
        f"{result['rounds']} rounds, [lowest..highest]; factors against AZR's best row with an",
        "answer a snippet. Left out, because they meet a limit: "
        f"{result['seed records left out, with the limit that they meet']}",
        ", ".join(f"{name} {value}" for name, value in result["versions"].items()),  # type: ignore[attr-defined]
        f"{'contender':44s} {'exec/s':>20s} {'':>6s} {'exec/CPU-s':>11s} {'':>6s} {'right':>6s}",
    ]
    for row in result["rows"]:  # type: ignore[attr-defined]
        wall = row["executions_per_second"]
        lines.append(
            f"{row['contender']:44s} {row['median_executions_per_second']:6.0f} "
            f"{f'[{min(wall):.0f}..{max(wall):.0f}]':>13s} "
            f"{row['median_factor_executions_per_second']:5.2f}x "
            f"{row['median_executions_per_cpu_second']:11.0f} "
            f"{row['median_factor_executions_per_cpu_second']:5.2f}x "
            f"{row['answers_right_per_task']:6.2f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
