"""A long run of the referee: does anything leak, does a killed worker cost a verdict?

Sends `--tasks` tasks of all three types, right and wrong, well-behaved and hostile, whose verdicts
are known beforehand. Meanwhile a thread kills a random worker or child with -9 every so often.
At the end: lost and wrong verdicts, processes and descriptors left over, memory growth of this
process and of the workers between the first tenth and the end.

The first tenth is warm-up: the interpreter's free lists fill up to the most tasks that were ever
under way at once (a task that hangs lets up to 256 per worker run ahead).

    python benchmarks/referee_soak.py --tasks 100000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from azr_population.referee import Question, Referee, RefereeSettings

Expected = tuple[str, tuple[str, ...]]
"""The reason of the validation and of each answer."""


def tasks(count: int, seed: int, slow_share: float) -> Iterator[tuple[Question, Expected]]:
    """Questions with the verdicts that they must get."""
    draw = random.Random(seed)
    for _ in range(count):
        a, b = draw.randrange(1, 10**6), draw.randrange(2, 50)
        kind = draw.random()
        if kind < slow_share:
            yield Question("code_o", "def f(x):\n    while True: pass", ("1",)), ("timeout", ())
        elif kind < 0.005:
            source = "def f(x):\n    a = []\n    while True: a.append(bytes(1 << 22))"
            yield Question("code_o", source, ("1",)), ("memory", ())
        elif kind < 0.10:
            source = f"import random\ndef f(x):\n    random._os.fork()\n    return {a}"
            yield Question("code_i", source, ("1",), answers=("1",)), ("forbidden", ())
        elif kind < 0.15:
            source = f"def f(x): return {a} // x"
            answers = ("0", "1", f"{a + 1}")
            wrong_or_right = "solved" if a == 0 else "wrong"
            yield (
                Question("code_i", source, ("1",), answers=answers),
                ("ok", ("error", "solved", wrong_or_right)),
            )
        elif kind < 0.55:
            source = f"def f(x):\n    y = [x % {b}, {a}]\n    y.append(sum(y))\n    return y"
            answers = (str(b + 1), str(b + 2), "'x'", "f(1)")
            if b == 2:
                answers = (str(b + 1), str(b + 4), "'x'", "f(1)")
            yield (
                Question("code_i", source, ("1",), answers=answers),
                ("ok", ("solved", "wrong", "error", "not_literal")),
            )
        elif kind < 0.8:
            source = f"def f(x): return {{x: {a}, 'b': (x, {b})}}"
            answers = (f"{{'b': ({a}, {b}), {a}: {a}}}", "{}", "dict()")
            yield (
                Question("code_o", source, (str(a),), answers=answers),
                ("ok", ("solved", "wrong", "not_literal")),
            )
        else:
            source = f"def f(x): return x * {b} + {a}"
            answers = (source, f"def f(x): return {a + b}", "def f(x) return 1")
            yield (
                Question("code_f", source, ("1", "2", "3"), answers=answers),
                ("ok", ("solved", "wrong", "syntax_error")),
            )


RESIDENT_GROWTH = "own memory growth after a tenth, percent: resident"


class Mark(NamedTuple):
    """Resident bytes after so many tasks: of this process and of a worker."""

    tasks: int
    resident: int
    worker: float


def _growth(early: float, late: float) -> float:
    return round(100 * (late / early - 1), 2)


def soak(count: int, workers: int, kill_every: float, seed: int, share: int) -> dict[str, object]:
    """Run the tasks; returns the figures."""
    descriptors = len(os.listdir("/proc/self/fd"))
    referee = Referee(RefereeSettings(workers=workers, timeout=1.0, memory_mb=64, share=share))
    pool = referee
    done = threading.Event()
    kills: Counter[str] = Counter()

    def killer() -> None:
        draw = random.Random(seed + 1)
        while not done.wait(draw.expovariate(1 / kill_every)):
            worker = draw.choice(pool._workers)
            zygote = worker.process
            children = _children(zygote.pid)
            if children and draw.random() < 0.5:
                kills["children"] += _kill_child(children[0], zygote.pid)
            else:
                zygote.kill()
                kills["workers"] += 1

    thread = threading.Thread(target=killer)
    expected: deque[Expected] = deque()
    wrong: Counter[str] = Counter()
    marks: list[Mark] = []

    def questions() -> Iterator[Question]:
        for question, verdict in tasks(count, seed, slow_share=0.0003):
            expected.append(verdict)
            yield question

    began = time.monotonic()
    thread.start()
    verdicts = 0
    try:
        for number, judgement in enumerate(referee.stream(questions())):
            outcome = (
                str(judgement.execution.reason),
                tuple(str(grade.reason) for grade in judgement.grades),
            )
            verdicts += 1
            right = expected.popleft()
            if outcome != right:
                wrong[f"{right} became {outcome}"] += 1
            if number % max(count // 20, 1) == 0:
                marks.append(Mark(number, _memory(os.getpid()), _zygote_memory(pool)))
    finally:
        done.set()
        thread.join()
    seconds = time.monotonic() - began
    marks.append(Mark(count, _memory(os.getpid()), _zygote_memory(pool)))
    early, late = marks[2] if len(marks) > 3 else marks[0], marks[-1]
    pids = [worker.process.pid for worker in pool._workers]
    referee.close()
    return {
        "tasks": count,
        "tasks that may share a child": share,
        "verdicts": verdicts,
        "lost": count - verdicts,
        "wrong": dict(wrong),
        "killed": dict(kills),
        "seconds": round(seconds, 1),
        "own memory, kB: tasks done, resident": [
            f"{mark.tasks} {mark.resident >> 10}" for mark in marks
        ],
        RESIDENT_GROWTH: _growth(early.resident, late.resident),
        "worker memory, MB, at a tenth and at the end": [
            round(early.worker / 2**20, 2),
            round(late.worker / 2**20, 2),
        ],
        "worker memory growth, percent": _growth(early.worker, late.worker),
        "descriptors left": len(os.listdir("/proc/self/fd")) - descriptors,
        "processes left": sum(os.path.exists(f"/proc/{pid}") for pid in pids)
        + len(_children(os.getpid())),
    }


def _kill_child(child: int, zygote: int) -> bool:
    """Kill -9 through a pidfd, after checking whose number it is."""
    try:
        descriptor = os.pidfd_open(child)
    except ProcessLookupError:
        return False
    try:
        if child not in _children(zygote):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def _children(pid: int) -> list[int]:
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _memory(pid: int) -> int:
    """Resident bytes."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _zygote_memory(pool: object) -> float:
    """Mean resident bytes of the live workers."""
    sizes = [_memory(worker.process.pid) for worker in pool._workers]  # type: ignore[attr-defined]
    warm = [size for size in sizes if size > 8 << 20]
    return sum(warm) / max(len(warm), 1)


def main() -> None:
    """Runs, prints the figures; exit code 1 if a task was lost or wrong, or anything leaked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kill-every", type=float, default=1.0, help="mean seconds between kills")
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    figures = soak(
        arguments.tasks, arguments.workers, arguments.kill_every, arguments.seed, arguments.share
    )
    text = json.dumps(figures, indent=1)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")
    leftovers = figures["processes left"] or figures["descriptors left"]
    grown = max(
        float(figures[name])  # type: ignore[arg-type]
        for name in (RESIDENT_GROWTH, "worker memory growth, percent")
    )
    if figures["lost"] or figures["wrong"] or leftovers or grown > 5:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
