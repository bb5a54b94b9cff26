"""Mathematics by math-verify as AZR calls it, and processes that read what models wrote.

A formula can be as hostile as a program: sympy and Python's parser have inputs that take hours or
all memory. So they run in processes with a limit of processor time (a busy machine changes no
verdict) and of memory.
"""

import logging
import multiprocessing
import os
import resource
import signal
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

from azr_population.evals.benchmarks import MathProblem
from azr_population.evals.grading.sandbox import NO_ANSWER, PASSED, WRONG, EvalVerdict

T = TypeVar("T")
_MEMORY_BYTES = 4 << 30
_WALL_FACTOR = 20
_LONGEST = 4000
"""Characters of an answer; longer ones are wrong."""


class Workers:
    """A pool of such processes; `close` ends them."""

    def __init__(self, processes: int = 0, cpu_seconds: float = 10.0) -> None:
        """`processes`: 0 starts one per core. `cpu_seconds` is for one item."""
        self.cpu_seconds = cpu_seconds
        self._pool = ProcessPool(
            max_workers=processes or len(os.sched_getaffinity(0)),
            # A fork of a process that holds a model and threads is neither cheap nor safe.
            context=multiprocessing.get_context("spawn"),
            initializer=_limit,
        )

    def close(self) -> None:
        """Ends the processes, whatever they do."""
        self._pool.stop()
        self._pool.join()

    def map(self, function: Callable[..., T], items: Iterable[tuple[Any, ...]]) -> list[T | None]:
        """`function(*item)` of each, in order; None where the process died of its limits."""

        def result(future: Any) -> T | None:
            try:
                value: T = future.result()
                return value
            except (ProcessExpired, TimeoutError, MemoryError, RecursionError):
                return None

        wall = _WALL_FACTOR * self.cpu_seconds
        futures = [
            self._pool.schedule(_within, args=[self.cpu_seconds, function, *item], timeout=wall)
            for item in items
        ]
        return [result(future) for future in futures]


def _limit() -> None:
    """In a new process: a memory limit, and Ctrl-C is for the parent to handle."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Its default action ends the process wherever it is, in the middle of a C function too.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def _within(cpu_seconds: float, function: Callable[..., T], *item: Any) -> T:
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        return function(*item)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def grade_answers(
    answers: Sequence[tuple[MathProblem, str]], workers: Workers
) -> list[EvalVerdict]:
    """Verdicts in order."""
    pairs = [(problem.gold, answer) for problem, answer in answers]
    equal = workers.map(equal_answers, pairs)
    return [_verdict(answer, same) for (_, answer), same in zip(answers, equal, strict=True)]


def _verdict(answer: str, equal: bool | None) -> EvalVerdict:
    if not answer.strip():
        return EvalVerdict(False, NO_ANSWER)
    if equal is None:
        return EvalVerdict(False, "timeout", "the answer took too long to read", answer)
    return EvalVerdict(equal, PASSED if equal else WRONG, "", answer)


def equal_answers(gold: str, answer: str) -> bool:
    """What AZR's grader says (`new_math_equal_process` in its evaluation/math_eval): math-verify on
    the two as they are. It may run for hours on a hostile answer: call it through `Workers`."""
    if not answer.strip() or len(answer) > _LONGEST:
        return False
    from math_verify import parse, verify

    # It warns that it has no time limit; `Workers` has one.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    first, other = (parse("\\boxed{" + text + "}", parsing_timeout=None) for text in (gold, answer))
    return bool(verify(first, other, timeout_seconds=None))
