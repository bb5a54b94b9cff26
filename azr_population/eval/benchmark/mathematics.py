"""Mathematics by math-verify as AZR calls it, and processes that read what models wrote.

A formula can be as hostile as a program: sympy and Python's parser have inputs that take hours or
all memory. So they run in processes with a limit of processor time (a busy machine changes no
verdict) and of memory.
"""

import atexit
import logging
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any, TypeVar

from azr_population.eval.benchmark.problem import (
    NO_ANSWER,
    PASSED,
    WRONG,
    WRONG_NUMBER,
    EvalVerdict,
    Problem,
    Prompt,
    VerdictLost,
)

T = TypeVar("T")
READING_SECONDS = 10.0
"""Processor time for one answer."""
THINK = (
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves "
    "it. The assistant first thinks about the reasoning process in the mind and then provides the "
    "user with the answer. The reasoning process and answer are enclosed within <think> </think> "
    "and <answer> </answer> tags, respectively, i.e., <think> reasoning process here </think> "
    "<answer> answer here </answer>. "
)
_BOX = "And your final answer will be extracted automatically by the \\boxed{} tag. "
_MEMORY_BYTES = 4 << 30
_WALL_FACTOR = 20
_LONGEST = 4000
"""Characters of an answer; longer ones are wrong."""


@dataclass(frozen=True)
class MathProblem(Problem):
    """A question; its answer is a mathematical object, `gold` in LaTeX without `\\boxed`."""

    id: str
    question: str
    gold: str

    @property
    def prompt(self) -> Prompt:
        """`azr_boxed` of AZR a82124e (evaluation/math_eval/eval/utils.py): plain text."""
        return Prompt(f"{THINK}{_BOX}User: {self.question}\nAssistant:", raw=True)

    def read(self, completion: str) -> str:
        """AZR's rule: the last box inside the last <answer>, or what is in that <answer>; without
        the tag the last box, or the first displayed formula."""
        if "<answer>" in completion:
            inside = completion.split("<answer>")[-1].split("</answer>")[0].strip()
            return last_boxed(inside) if "boxed" in inside else inside
        if "boxed" in completion:
            return last_boxed(completion)
        displayed = re.search(r"\\\[(.*?)\\\]", completion)
        return displayed.group(1).strip() if displayed else ""

    @classmethod
    def judge(cls, answers: Sequence[tuple["MathProblem", str]]) -> list[EvalVerdict]:
        equal = read_within_limits(equal_answers, [(p.gold, answer) for p, answer in answers])
        return [_verdict(answer, same) for (_, answer), same in zip(answers, equal, strict=True)]

    @classmethod
    def known_completions(
        cls, problems: Sequence["MathProblem"]
    ) -> list[tuple["MathProblem", str, str]]:
        box = "<answer>\\boxed{{{}}}</answer>".format
        return [(problem, box(problem.gold), box(WRONG_NUMBER)) for problem in problems]


def _verdict(answer: str, equal: bool | None) -> EvalVerdict:
    if not answer.strip():
        return EvalVerdict(False, NO_ANSWER)
    if equal is None:
        return EvalVerdict(False, "timeout", "the answer took too long to read", answer)
    return EvalVerdict(equal, PASSED if equal else WRONG, "", answer)


def last_boxed(text: str) -> str:
    """The content of the last `\\boxed{...}` or `\\fbox{...}`; '' if there is none, or no end."""
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    opening = re.match(r"\\f?box(?:ed)?\s*", text[start:]) if start >= 0 else None
    if opening is None:
        return ""
    tail = text[start + opening.end() :]
    if not tail.startswith("{"):
        return re.split(r"[\s$.,]", tail, maxsplit=1)[0]  # `\boxed 7`
    depth = 0
    for position, character in enumerate(tail):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return tail[1:position].strip()
    return ""


def equal_answers(gold: str, answer: str) -> bool:
    """Verdict of AZR's grader (`new_math_equal_process` in its evaluation/math_eval): math-verify
    on the two as they are. It may run for hours: call it by `read_within_limits`."""
    if not answer.strip() or len(answer) > _LONGEST:
        return False
    from math_verify import parse, verify

    # It warns that it has no time limit; the process has one.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    first, other = (parse("\\boxed{" + text + "}", parsing_timeout=None) for text in (gold, answer))
    return bool(verify(first, other, timeout_seconds=None))


def read_within_limits(
    function: Callable[..., T], items: Iterable[tuple[Any, ...]]
) -> list[T | None]:
    """`function(*item)` of each in other processes, in order; None where one died of its limits, or
    crashed. Raises VerdictLost: one was killed from outside, or got no processor time."""
    from concurrent.futures import TimeoutError  # Python 3.10: not the built-in one

    from pebble import ProcessExpired

    def result(future: Any) -> T | None:
        try:
            value: T = future.result()
            return value
        except (MemoryError, RecursionError):
            return None
        except TimeoutError as error:
            seconds = f"{READING_SECONDS:g} s of processor time in {wall:g} s"
            raise VerdictLost(f"a process that reads answers did not get {seconds}") from error
        except ProcessExpired as error:
            if error.exitcode != -signal.SIGKILL:
                return None
            raise VerdictLost(
                "a process that reads answers was killed from outside (SIGKILL); perhaps the "
                "machine has no memory left"
            ) from error

    wall, pool = _WALL_FACTOR * READING_SECONDS, _processes()
    arguments = [[READING_SECONDS, function, *item] for item in items]
    return [result(f) for f in [pool.schedule(_limited, args=a, timeout=wall) for a in arguments]]


class _Process(SpawnProcess):
    """Does not run the main module again, which may be a script without a guard, or come from
    standard input and so have no file."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            return SpawnProcess._Popen(process_obj)
        finally:
            sys.modules["__main__"] = main


class _Spawn(SpawnContext):
    """A fork of a process that holds a model and threads is neither cheap nor safe."""

    Process = _Process


@cache
def _processes() -> Any:
    """A pool with a process per core; the processes end with this one."""
    from pebble import ProcessPool

    pool = ProcessPool(
        max_workers=len(os.sched_getaffinity(0)),
        context=_Spawn(),
        initializer=_limit,
    )
    atexit.register(pool.join)
    atexit.register(pool.stop)
    return pool


def _limit() -> None:
    """Limits the memory of a new process, and leaves Ctrl-C to the parent."""
    _, highest = resource.getrlimit(resource.RLIMIT_AS)  # -1: no limit
    most = _MEMORY_BYTES if highest == resource.RLIM_INFINITY else min(_MEMORY_BYTES, highest)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Its default action ends the process wherever it is, in the middle of a C function too.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)


def _limited(cpu_seconds: float, function: Callable[..., T], *item: Any) -> T:
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        return function(*item)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
