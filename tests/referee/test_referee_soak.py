"""Thousands of tasks whose verdicts are known, right and wrong, well-behaved and hostile, while
workers and children are killed: nothing is lost, nothing leaks."""

import os
import random
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from processes import children_of, kill_one

from azr_population.referee import Question, Referee, RefereeSettings

TASKS, SEED = 4000, 3


def known_task(draw):
    """A question, and the reasons of its validation and its answers."""
    a, b, kind = draw.randrange(1, 10**6), draw.randrange(3, 50), draw.random()
    if kind < 0.0003:
        return Question("code_o", "def f(x):\n    while True: pass", ("1",)), ("timeout",)
    if kind < 0.005:
        source = "def f(x):\n    a = []\n    while True: a.append(bytes(1 << 22))"
        return Question("code_o", source, ("1",)), ("memory",)
    if kind < 0.10:
        source = f"import random\ndef f(x):\n    random._os.fork()\n    return {a}"
        return Question("code_i", source, ("1",), answers=("1",)), ("forbidden",)
    if kind < 0.55:
        source = f"def f(x):\n    y = [x % {b}, {a}, {a} // x]\n    return y"
        answers = (str(b + 1), "1", "2", "0", "'x'", "f(1)")
        right = "solved" if a == a // (b + 1) else "wrong"
        reasons = ("ok", right, "solved", "wrong", "error", "error", "not_literal")
        return Question("code_i", source, ("1",), answers=answers), reasons
    if kind < 0.8:
        source = f"def f(x): return {{x: {a}, 'b': (x, {b})}}"
        answers = (f"{{'b': ({a}, {b}), {a}: {a}}}", "{}", "dict()")
        reasons = ("ok", "solved", "wrong", "not_literal")
        return Question("code_o", source, (str(a),), answers=answers), reasons
    source = f"def f(x): return x * {b} + {a}"
    answers = (source, f"def f(x): return {a + b}", "def f(x) return 1")
    question = Question("code_f", source, ("1", "2", "3"), answers=answers)
    return question, ("ok", "solved", "wrong", "syntax_error")


def resident(pid):
    """Bytes in memory."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def kill_often(referee, done):
    """About once a second a worker or the child of one."""
    draw = random.Random(SEED + 1)
    while not done.wait(draw.expovariate(1.0)):
        kill_one(draw.choice(referee._workers).process, child=draw.random() >= 0.5)


@pytest.mark.slow
def test_killed_workers_lose_nothing_and_nothing_leaks():
    draw = random.Random(SEED)
    tasks = [known_task(draw) for _ in range(TASKS)]
    descriptors, early, done = len(os.listdir("/proc/self/fd")), 0, threading.Event()
    referee = Referee(RefereeSettings(workers=2, timeout=60.0, cpu_seconds=1.0, memory_mb=64))
    killer = threading.Thread(target=kill_often, args=(referee, done))
    killer.start()
    seen = []
    try:
        for judged in referee.stream(question for question, _ in tasks):
            reasons = (judged.execution.reason, *(grade.reason for grade in judged.grades))
            seen.append(tuple(map(str, reasons)))
            if len(seen) == TASKS // 10:  # a tenth warms up
                early = resident(os.getpid())
    finally:
        done.set()
        killer.join()
    grown = resident(os.getpid()) / early
    pids = [worker.process.pid for worker in referee._workers]
    referee.close()
    assert seen == [reasons for _, reasons in tasks]
    assert grown < 1.1  # so short a run is warm-up for the most part
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids) and not children_of(os.getpid())
    assert len(os.listdir("/proc/self/fd")) == descriptors
