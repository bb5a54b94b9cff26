"""Verdicts, and the referee for benchmarks: more modules, limits of CPU time."""

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from azr_population.evals.grading import sandboxed
from azr_population.referee import Referee, RefereeSettings
from azr_population.referee.jobs import CallOutcome
from azr_population.referee.limits import MODULES
from azr_population.referee.sandbox.wire import SCRIPT, Call, SandboxWork

_MORE = (
    "ast", "atexit", "builtins", "codecs", "copyreg", "csv", "errno", "functools", "gc", "glob",
    "hashlib", "hmac", "inspect", "io", "ipaddress", "linecache", "locale", "logging", "marshal",
    "os", "os.path", "pathlib", "pickle", "platform", "pprint", "reprlib", "sched", "shlex",
    "signal", "stat", "stringprep", "sys", "tempfile", "threading", "time", "timeit", "tokenize",
    "traceback", "unittest", "urllib.parse", "uuid", "warnings", "weakref", "zoneinfo",
)  # fmt: skip
"""Modules that solutions import. They are harmless here: the kernel limits what a program may do,
and the referee's tests allow every module."""

MEMORY_MB = 4096
"""As evalplus: some canonical solutions make gigabytes."""
LONGEST_PROGRAM = 200_000
"""Characters."""
_WALL_FACTOR = 10
PASSED, WRONG, NO_ANSWER = "passed", "wrong", "no answer"
"""Reasons of every grader; programs also have the referee's (timeout, error, memory, ...)."""


@dataclass(frozen=True)
class EvalVerdict:
    """Whether a completion is right, why not, and what was taken for its answer."""

    passed: bool
    reason: str
    detail: str = ""
    answer: str = ""
    base_passed: bool | None = None
    """Of HumanEval+ and MBPP+: whether the tests of the original benchmark are passed."""


@cache
def source() -> str:
    """What the sandbox executes before it takes tasks."""
    return inspect.getsource(sandboxed)


def unfit(program: str) -> str:
    """Why a program is not run (it is empty or too long); '' otherwise."""
    if not program.strip():
        return NO_ANSWER
    return "too long" if len(program) > LONGEST_PROGRAM else ""


def open_referee(cpu_seconds: float, workers: int = 0, part_seconds: float = 0.0) -> Referee:
    """A referee whose tasks call functions of `sandboxed`. Each may take `cpu_seconds` of processor
    time, and `part_seconds` for each input (0: no limit)."""
    return Referee(
        RefereeSettings(
            workers=workers,
            timeout=_WALL_FACTOR * cpu_seconds,
            cpu_seconds=cpu_seconds,
            part_seconds=part_seconds,
            prelude=source(),
            memory_mb=MEMORY_MB,
            max_output_chars=sandboxed.MAX_CHARS,
            modules=(*MODULES, *_MORE, "numpy"),
            required_modules=("numpy",),
            banned_names=(),
        )
    )


def run(referee: Referee, calls: Iterable[str]) -> Iterator[CallOutcome]:
    """What came of each call of a function of `sandboxed`, each in a child of its own, in order."""
    works = (SandboxWork("", (Call(SCRIPT, call),), isolated=True) for call in calls)
    return (outcome for (outcome,) in referee.outcomes(works))
