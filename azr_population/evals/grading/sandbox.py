"""The referee as benchmarks need it: more modules, and time by the processor's clock."""

import importlib.util
from collections.abc import Iterable, Iterator

from azr_population.evals.grading import sandboxed
from azr_population.referee import Referee, RefereeSettings
from azr_population.referee.jobs import Outcome
from azr_population.referee.sandbox.wire import SCRIPT, Call, Work
from azr_population.referee.settings import MODULES

_MORE = (
    "ast", "atexit", "builtins", "codecs", "copyreg", "csv", "errno", "functools", "gc", "glob",
    "hashlib", "hmac", "inspect", "io", "ipaddress", "linecache", "locale", "logging", "marshal",
    "os", "os.path", "pathlib", "pickle", "platform", "pprint", "reprlib", "sched", "shlex",
    "signal", "stat", "stringprep", "sys", "tempfile", "threading", "time", "timeit", "tokenize",
    "traceback", "unittest", "urllib.parse", "uuid", "warnings", "weakref", "zoneinfo",
)  # fmt: skip
"""Modules that programs on the web import. Importing them gains nothing here: the kernel says what
a program may do, and the referee's own tests let every module be imported."""

MEMORY_MB = 4096
"""As evalplus: some canonical solutions make gigabytes."""
MAX_CHARS = 65_536
_WALL_FACTOR = 10


def open_referee(
    module: str,
    cpu_seconds: float,
    workers: int = 0,
    numpy: bool = False,
    part_seconds: float = 0.0,
) -> Referee:
    """A referee whose tasks may take that many seconds of processor time each.

    `module`: of `sandboxed`, whose functions its tasks call. `numpy`: programs may import it, where
    it is installed. `part_seconds`: of processor time for each input; 0 sets no limit.
    """
    extra = ("numpy",) if numpy and importlib.util.find_spec("numpy") else ()
    return Referee(
        RefereeSettings(
            workers=workers,
            timeout=_WALL_FACTOR * cpu_seconds,
            cpu_seconds=cpu_seconds,
            part_seconds=part_seconds,
            prelude=sandboxed.text_of(module),
            memory_mb=MEMORY_MB,
            max_output_chars=MAX_CHARS,
            modules=MODULES + _MORE + extra,
            required_modules=extra,
            banned_names=(),
        )
    )


def task(expression: str) -> Work:
    """Evaluates a call of a function of the referee's module, in a child of its own."""
    return Work("", (Call(SCRIPT, expression),), isolated=True)


def run(referee: Referee, works: Iterable[Work]) -> Iterator[Outcome]:
    """What came of each task, in order; the text of an outcome is the expression's value."""
    return (outcome for (outcome,) in referee.outcomes(works))
