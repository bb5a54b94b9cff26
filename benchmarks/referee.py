"""Tasks and executions per second: the referee beside AZR's executor and a process per program.

One task is AZR's work on one proposal: validate the program with its determinism check (two
executions), then judge 8 different predicted inputs (eight executions). The tasks are AZR's seed
records (`--seeds FILE`); the predicted inputs are literals, so that every contender runs them all.
Programs that take over a second for the ten are left out: they would measure Python itself.

Every contender does the same tasks in this one run, in slices that alternate, so that a busy
machine slows all of them alike.

    AZR_HOME=... python benchmarks/referee.py --seeds .../7b_coder_seed_io.jsonl
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from azr_population.referee import Question, Referee, RefereeSettings
from azr_population.referee.sandbox import literal

ANSWERS = 8
EXECUTIONS = 2 + ANSWERS
DEADLINE = 10
SHARE = 16


def read_tasks(path: Path) -> list[Question]:
    """The seed records that the referee finds valid, each with 8 distinct literal inputs."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    inputs = list(dict.fromkeys(record["input"] for record in records if _is_literal(record)))
    questions = [
        Question(
            "code_i",
            record["snippet"],
            (record["input"],),
            answers=(record["input"], *[i for i in inputs if i != record["input"]][n : n + 7]),
            imports=tuple(record["imports"]),
        )
        for n, record in enumerate(records)
        if _is_literal(record)
    ]
    questions = [question for question in questions if len(question.answers) == ANSWERS]
    with Referee(RefereeSettings(deadline=1.0)) as referee:
        judged = zip(questions, referee.judge(questions), strict=True)
        return [
            question
            for question, judgement in judged
            if judgement.execution.valid
            and not any(str(grade.reason) == "timeout" for grade in judgement.grades)
        ]


def _is_literal(record: dict[str, str]) -> bool:
    try:
        literal.parse_arguments(record["input"])
    except literal.NotLiteral:
        return False
    return "\n" not in record["input"]


Contender = Callable[[Sequence[Question]], int]
"""Does the tasks; returns how many answers it found right."""


def with_referee(referee: Referee) -> Contender:
    """All tasks in one batch."""

    def run(tasks: Sequence[Question]) -> int:
        return sum(grade.solved for judged in referee.judge(tasks) for grade in judged.grades)

    return run


def with_executor(executor: object) -> Contender:
    """One call per validation and per answer, as AZR's reward manager makes them."""

    def run(tasks: Sequence[Question]) -> int:
        right = 0
        for task in tasks:
            imports = list(task.imports)
            _, output = executor.check_all(task.program, task.inputs[0], imports=imports)  # type: ignore[attr-defined]
            for answer in task.answers:
                score = executor.eval_input_prediction(task.program, output, answer, imports)  # type: ignore[attr-defined]
                right += bool(score)
        return right

    return run


def with_azr_batches(executor: object) -> Contender:
    """AZR's executor at its best: all snippets in one `batch_apply`, over all its workers."""
    from absolute_zero_reasoner.utils.code_utils.templates import (
        CHECK_DETERMINISM_TEMPLATE,
        EVAL_INPUT_PREDICTION_TEMPLATE,
    )

    def run(tasks: Sequence[Question]) -> int:
        sources = ["\n".join([*task.imports, task.program]) for task in tasks]
        checks = executor.batch_apply(  # type: ignore[attr-defined]
            [
                CHECK_DETERMINISM_TEMPLATE.format(code=source, inputs=task.inputs[0])
                for source, task in zip(sources, tasks, strict=True)
            ]
        )
        attempts = executor.batch_apply(  # type: ignore[attr-defined]
            [
                EVAL_INPUT_PREDICTION_TEMPLATE.format(
                    code=source, gold_output=output, agent_input=answer
                )
                for source, task, (output, _) in zip(sources, tasks, checks, strict=True)
                for answer in task.answers
            ]
        )
        return sum(result == "True" for result, _ in attempts)

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
    """AZR's workers print what the programs print; not into our table."""
    sys.stdout.flush()
    kept = os.dup(1)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(null)


def main() -> None:
    """Measure and print a table; `--out FILE` also writes it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    workers = RefereeSettings(workers=given.workers).worker_count
    tasks = read_tasks(given.seeds)
    referee = Referee(RefereeSettings(workers=workers, deadline=DEADLINE))
    sharing = Referee(RefereeSettings(workers=workers, deadline=DEADLINE, share=SHARE))
    contenders: list[tuple[str, Contender, int]] = [
        (f"referee, {workers} workers, a child per task", with_referee(referee), 1),
        (f"referee, plain tasks share ({SHARE})", with_referee(sharing), 1),
    ]
    if "AZR_HOME" in os.environ:
        sys.path.insert(0, os.environ["AZR_HOME"])
        from absolute_zero_reasoner.utils.code_utils import python_executor

        from azr_population.azr.executor import RefereeExecutor

        python_executor.tqdm = _Quiet
        for count in sorted({1, workers}):
            azr = python_executor.PythonExecutor(timeout_length=DEADLINE, max_workers=count)
            contenders += [
                (f"AZR, {count} workers, call by call", with_executor(azr), 1),
                (f"AZR, {count} workers, in batches", with_azr_batches(azr), 1),
            ]
        drop_in = RefereeExecutor(timeout_length=DEADLINE, max_workers=workers)
        contenders.append(("drop-in, call by call, confined", with_executor(drop_in), 1))
    contenders.append(("a process per execution", with_processes(), 16))
    with silenced():
        rows = measure(contenders, tasks, given.rounds)
    report(rows, len(tasks))
    if given.out:
        given.out.write_text(json.dumps({"tasks": len(tasks), "rows": rows}, indent=1) + "\n")
    referee.close()
    sharing.close()


class _Quiet:
    """AZR's progress bar, without the bar."""

    def __init__(self, *arguments: object, **more: object) -> None:
        pass

    def update(self, count: int) -> None:
        pass

    def close(self) -> None:
        pass


SLICE = 96  # tasks that a contender does before the next one has its turn


def measure(
    contenders: Sequence[tuple[str, Contender, int]], tasks: Sequence[Question], rounds: int
) -> list[dict[str, object]]:
    """Each contender in turn, slice by slice; a slow one gets every n-th task only.

    Besides the wall clock: the CPU time of this process and all below it, which other programs on
    the machine change much less.
    """
    seconds = dict.fromkeys((name for name, _, _ in contenders), 0.0)
    cpu = dict.fromkeys(seconds, 0.0)
    right = dict.fromkeys(seconds, 0)
    done = dict.fromkeys(seconds, 0)
    for _, run, _ in contenders:
        run(tasks[:4])
    for _ in range(rounds):
        for start in range(0, len(tasks), SLICE):
            for name, run, thinned in contenders:
                share = tasks[start : start + SLICE : thinned]
                began, used = time.perf_counter(), cpu_seconds(os.getpid())
                right[name] += run(share)
                seconds[name] += time.perf_counter() - began
                cpu[name] += cpu_seconds(os.getpid()) - used
                done[name] += len(share)
    return [
        {
            "contender": name,
            "tasks_per_second": done[name] / seconds[name],
            "executions_per_second": EXECUTIONS * done[name] / seconds[name],
            "executions_per_cpu_second": EXECUTIONS * done[name] / cpu[name],
            "answers_right_per_task": right[name] / done[name],
        }
        for name in seconds
    ]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, its living descendants and all that they have reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for thread in Path(f"/proc/{pid}/task").iterdir():
            if thread.name != str(pid):
                children += (thread / "children").read_text().split()
    except OSError:
        return 0.0
    own = sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_seconds(int(child)) for child in children)


def report(rows: Sequence[dict[str, object]], tasks: int) -> None:
    """Print the table, with factors against the best of AZR's rows (or against the first)."""
    walls = [float(row["executions_per_second"]) for row in rows]  # type: ignore[arg-type]
    cpus = [float(row["executions_per_cpu_second"]) for row in rows]  # type: ignore[arg-type]
    azr = [n for n, row in enumerate(rows) if str(row["contender"]).startswith("AZR")] or [0]
    best_wall, best_cpu = max(walls[n] for n in azr), max(cpus[n] for n in azr)
    print(f"{tasks} seed tasks, {EXECUTIONS} executions each; factors against AZR's best row")
    print(f"{'contender':38s} {'tasks/s':>8s} {'exec/s':>8s} {'exec/CPU-s':>18s} {'right':>13s}")
    for row, wall, cpu in zip(rows, walls, cpus, strict=True):
        print(
            f"{row['contender']:38s} {row['tasks_per_second']:8.1f} {wall:8.0f} "
            f"{wall / best_wall:6.2f}x {cpu:10.0f} {cpu / best_cpu:6.2f}x "
            f"{row['answers_right_per_task']:5.2f}"
        )


if __name__ == "__main__":
    main()
