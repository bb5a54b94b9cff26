"""AZR's executor answered ahead: the verdicts that it gives one by one, on its own seeds, on
endless loops and on what does not run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import needs
import pytest

from azr_population.hosts.azr.executors import PrefetchingExecutor

AZR_HOME = Path(os.environ.get("AZR_HOME", ""))
LIMIT = 2
"""Seconds that a program has; AZR gives 10."""
LOOP = "def f(a):\n    while True:\n        pass"


class Counting:
    """An executor in small: a program prints its length."""

    max_workers = 1
    _process_pool = None

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def cleanup(self) -> None: ...

    def apply(self, code: str) -> tuple[str, str]:
        return self.batch_apply([code])[0]

    def batch_apply(self, codes: list[str]) -> list[tuple[str, str]]:
        self.batches.append(codes)
        return [(str(len(code)), "Done") for code in codes]

    def judged(self, code: str) -> int:
        printed, status = self.apply(code)
        assert status == "Done"
        return printed != "True" and int(printed)


def test_what_is_prefetched_runs_once_and_together() -> None:
    executor = Counting()
    with PrefetchingExecutor(executor).answering() as ahead:
        ahead.prefetch([lambda asked, n=n: asked.judged("x" * n) for n in (3, 5, 3)])
        assert executor.batches == [["xxx", "xxxxx"]]
        assert [executor.judged("x" * n) for n in (3, 5, 3)] == [3, 5, 3]
        assert ahead.missed == 0 and len(executor.batches) == 1
        assert executor.judged("seven..") == 7 and ahead.missed == 1
    assert executor.judged("xxx") == 3 and len(executor.batches) == 3


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
        {"code": one["snippet"], "inputs": one["input"], "imports": one["imports"]}
        for one in seeds("7b_coder_seed_io.jsonl", count)
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
    return [{**one, **words, "check_determinism": True} for one in asked]


def predictions(count: int) -> list[dict[str, Any]]:
    """Arguments of `eval_input_prediction`: right, wrong, no literal, and a loop."""
    asked = []
    for one in seeds("7b_coder_seed_io.jsonl", count):
        known = {"code": one["snippet"], "gold_output": one["output"], "imports": one["imports"]}
        asked += [{**known, "agent_input": text} for text in (one["input"], "0", "f(1)")]
    for one in seeds("7b_coder_code_f_seed_io.jsonl", count // 4):
        pairs = zip(one["inputs"], one["outputs"], strict=True)
        asked += [
            {"code": one["snippet"], "gold_output": output, "agent_input": given,
             "imports": one["imports"]}
            for given, output in pairs
        ]  # fmt: skip
    return [*asked, {"code": LOOP, "gold_output": "1", "agent_input": "1", "imports": []}]


@pytest.mark.azr
@pytest.mark.slow
@needs.azr_checkout
def test_azrs_verdicts_are_the_same_ahead_as_one_by_one(executor: Any) -> None:
    asked, judged = checks(24), predictions(24)
    started = time.perf_counter()
    alone = [executor.check_all(**one) for one in asked]
    scores = [executor.eval_input_prediction(**one) for one in judged]
    between = time.perf_counter()
    with PrefetchingExecutor(executor, processes=4).answering() as ahead:
        ahead.prefetch([lambda asking, one=one: asking.check_all(**one) for one in asked])
        together = [executor.check_all(**one) for one in asked]
        ahead.prefetch(
            [lambda asking, one=one: asking.eval_input_prediction(**one) for one in judged]
        )
        told = [executor.eval_input_prediction(**one) for one in judged]
        assert ahead.missed == 0
    seconds = (between - started, time.perf_counter() - between)
    print(f"{len(asked)} checks, {len(judged)} predictions: {seconds[0]:.1f} s one by one, "
          f"{seconds[1]:.1f} s ahead")  # fmt: skip
    assert repr(together) == repr(alone) and repr(told) == repr(scores)
    assert {verdict for verdict, _ in alone} == {True, False} and set(scores) == {0.0, 1.0}


@pytest.mark.azr
@pytest.mark.slow
@needs.azr_checkout
def test_endless_loops_wait_together(executor: Any) -> None:
    loops = [LOOP.replace("pass", f"a = {n}") for n in range(6)]
    with PrefetchingExecutor(executor, processes=6).answering() as ahead:
        started = time.perf_counter()
        ahead.prefetch(
            [lambda asking, code=code: asking.check_all(code=code, inputs="1") for code in loops]
        )
        told = [executor.check_all(code=code, inputs="1") for code in loops]
        seconds = time.perf_counter() - started
    assert told == [(False, "")] * 6
    # One after the other they would take a limit each.
    assert seconds < 0.75 * LIMIT * len(loops)
