"""AZR's executor for a step: programs run before AZR asks, with the same verdicts as one by one."""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import needs
import pytest

from azr_population.hosts.azr import executors
from azr_population.hosts.azr.executors import StepExecutor

AZR_HOME = Path(os.environ.get("AZR_HOME", ""))
LIMIT = 2
"""Seconds that a program has; AZR gives 10."""
LOOP = "def f(a):\n    while True:\n        pass"


class Counting:
    """An executor in small: a program prints its length."""

    max_workers = 1
    _process_pool = None

    def __init__(self) -> None:
        self.ran: list[str] = []

    def cleanup(self) -> None: ...

    def _get_process_pool(self, size: int) -> None: ...

    def apply(self, code: str) -> tuple[str, str]:
        return self.batch_apply([code])[0]

    def batch_apply(self, codes: list[str]) -> list[tuple[str, str]]:
        self.ran += codes
        return [(str(len(code)), "Done") for code in codes]

    def length(self, code: str) -> int:
        printed, status = self.apply(code)
        assert status == "Done"
        return printed != "True" and int(printed)


def test_a_prefetched_program_runs_once() -> None:
    executor = Counting()
    step = StepExecutor(executor, processes=1)
    step.prefetch([lambda asked, n=n: asked.length("x" * n) for n in (3, 5, 3)])
    assert [step.length("x" * n) for n in (3, 5, 3)] == [3, 5, 3]
    assert executor.ran == ["xxx", "xxxxx"] and step.missed == 0
    assert step.length("seven..") == 7 and step.missed == 1
    step.close()
    assert executor.length("xxx") == 3


def test_the_referee_in_its_place_is_asked_as_it_is() -> None:
    class Referee(Counting):
        _get_process_pool = property()  # has none

    executor = Referee()
    step = StepExecutor(executor)
    step.prefetch([lambda asked: asked.length("xxx")])
    assert not executor.ran and step.length("xxx") == 3 and executor.ran == ["xxx"]
    step.close()


class Clock:
    """Seconds that pass where a program runs, a row is written or AZR waits, and nowhere else."""

    def __init__(self) -> None:
        self.now = self.waited = 0.0


class TimedPool:
    """In the place of the threads: so many programs at once, each as long as `LENGTH` says."""

    clock: Clock

    def __init__(self, processes: int) -> None:
        self.free = [0.0] * processes

    def submit(self, run: Callable[[str], Any], code: str) -> TimedPool.Run:
        end = max(self.clock.now, heapq.heappop(self.free)) + seconds(code)
        heapq.heappush(self.free, end)
        return TimedPool.Run(self.clock, end, run(code))

    def shutdown(self, cancel_futures: bool) -> None: ...

    class Run:
        """A program that has been started."""

        def __init__(self, clock: Clock, end: float, printed: Any) -> None:
            self.clock, self.end, self.printed = clock, end, printed

        def result(self) -> Any:
            wait = max(0.0, self.end - self.clock.now)
            self.clock.now += wait
            self.clock.waited += wait
            return self.printed


def seconds(code: str) -> float:
    return 10.0 if code.startswith("loop") else 0.001


@pytest.mark.parametrize("last_loop", [40, 93])
def test_programs_run_while_later_rows_are_written(
    monkeypatch: pytest.MonkeyPatch, last_loop: int
) -> None:
    """A row ends every second for 100 seconds; three are endless loops."""
    monkeypatch.setattr(executors, "ThreadPoolExecutor", TimedPool)
    codes = [f"{'loop' if row in (5, 20, last_loop) else 'program'} {row}" for row in range(100)]
    waited, lengths = {}, {}
    for streamed in (True, False):
        TimedPool.clock = clock = Clock()
        step = StepExecutor(Counting(), processes=4)
        for code in codes:
            clock.now += 1.0
            if streamed:
                step.prefetch([lambda asked, code=code: asked.length(code)])
        step.prefetch([lambda asked, code=code: asked.length(code) for code in codes])
        lengths[streamed] = [step.length(code) for code in codes]
        waited[streamed] = clock.waited
        assert step.missed == 0
    assert lengths[True] == lengths[False] == [len(code) for code in codes]
    # The loop of row 93 is started 6 seconds before the last row ends.
    assert waited[True] == pytest.approx(4.0 if last_loop == 93 else 0.001, abs=0.002)
    assert waited[False] == pytest.approx(10.0, abs=0.2)


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    needs.verl()
    monkeypatch.syspath_prepend(str(AZR_HOME))
    from absolute_zero_reasoner.utils.code_utils.python_executor import PythonExecutor

    from azr_population.patches import EVALS, apply, undo

    apply(EVALS)
    made = PythonExecutor(timeout_length=LIMIT, ast_check=True)
    yield made
    made.cleanup()
    undo(EVALS)


def seeds(name: str, count: int) -> list[dict[str, Any]]:
    lines = (AZR_HOME / "data" / name).read_text().splitlines()
    return [json.loads(line) for line in lines[:: len(lines) // count]][:count]


def checks(count: int) -> list[dict[str, Any]]:
    """Arguments of `check_all`: AZR's own seeds, a loop, what raises, what does not parse."""
    asked = [
        {"code": seed["snippet"], "inputs": seed["input"], "imports": seed["imports"]}
        for seed in seeds("7b_coder_seed_io.jsonl", count)
    ]
    odd = [
        (LOOP, "1"),
        ("def f(a):\n    return 1 / 0", "1"),
        ("def f(a:\n", "1"),
        ("import random\ndef f(a):\n    return a", "1"),
        ("def f(a):\n    return a", "x"),
    ]
    asked += [{"code": code, "inputs": given, "imports": []} for code, given in odd]
    words = {"banned_keywords": ["random"], "banned_keywords_for_errors_and_exceptions": []}
    return [{**arguments, **words, "check_determinism": True} for arguments in asked]


def predictions(count: int) -> list[dict[str, Any]]:
    """Arguments of `eval_input_prediction`: right, wrong, no literal, and a loop."""
    asked = []
    for seed in seeds("7b_coder_seed_io.jsonl", count):
        task = {"code": seed["snippet"], "gold_output": seed["output"], "imports": seed["imports"]}
        asked += [{**task, "agent_input": text} for text in (seed["input"], "0", "f(1)")]
    for seed in seeds("7b_coder_code_f_seed_io.jsonl", count // 4):
        pairs = zip(seed["inputs"], seed["outputs"], strict=True)
        asked += [
            {"code": seed["snippet"], "gold_output": output, "agent_input": given,
             "imports": seed["imports"]}
            for given, output in pairs
        ]  # fmt: skip
    return [*asked, {"code": LOOP, "gold_output": "1", "agent_input": "1", "imports": []}]


@pytest.mark.azr
@pytest.mark.slow
@needs.azr_checkout
def test_azrs_verdicts_are_the_same_ahead_as_one_by_one(executor: Any) -> None:
    asked, judged = checks(24), predictions(24)
    alone = [executor.check_all(**arguments) for arguments in asked]
    scores = [executor.eval_input_prediction(**arguments) for arguments in judged]
    step = StepExecutor(executor, processes=4)
    for arguments in asked:
        step.prefetch([lambda asking, arguments=arguments: asking.check_all(**arguments)])
    step.prefetch(
        [
            lambda asking, arguments=arguments: asking.eval_input_prediction(**arguments)
            for arguments in judged
        ]
    )
    ahead = [step.check_all(**arguments) for arguments in asked]
    ahead_scores = [step.eval_input_prediction(**arguments) for arguments in judged]
    step.close()
    assert step.missed == 0 and step.checked == len(asked)
    assert repr(ahead) == repr(alone) and repr(ahead_scores) == repr(scores)
    assert {verdict for verdict, _ in alone} == {True, False} and set(scores) == {0.0, 1.0}


@pytest.mark.azr
@pytest.mark.slow
@needs.azr_checkout
def test_an_endless_loop_holds_up_no_other_program(executor: Any) -> None:
    loops = [LOOP.replace("pass", f"a = {n}") for n in range(6)]
    step = StepExecutor(executor, processes=6)
    step.prefetch(
        [lambda asking, code=code: asking.check_all(code=code, inputs="1") for code in loops]
    )
    assert [step.check_all(code=code, inputs="1") for code in loops] == [(False, "")] * 6
    step.close()
