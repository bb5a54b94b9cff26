"""Runs programs in the referee's sandbox for benchmarks, and reads what comes out as text.

The text was written by the solution's side of the wall, so it is compared as text, or read as a
literal, and never evaluated.
"""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, NamedTuple

from azr_population.eval.benchmark import sandboxed
from azr_population.eval.benchmark.problem import (
    NO_ANSWER,
    PASSED,
    WRONG,
    EvalVerdict,
    VerdictLost,
)
from azr_population.files import inflate
from azr_population.referee import Reason, Referee, RefereeSettings
from azr_population.referee.jobs import CallOutcome
from azr_population.referee.limits import MODULES
from azr_population.referee.sandbox import literal
from azr_population.referee.sandbox.wire import SCRIPT, Call, SandboxWork

_MORE = (
    "ast", "atexit", "builtins", "codecs", "copyreg", "csv", "errno", "fileinput", "functools",
    "gc", "glob", "hashlib", "hmac", "inspect", "io", "ipaddress", "linecache", "locale", "logging",
    "marshal", "os", "os.path", "pathlib", "pickle", "platform", "pprint", "reprlib", "sched",
    "shlex", "signal", "stat", "stringprep", "sys", "tempfile", "threading", "time", "timeit",
    "tokenize", "traceback", "unittest", "urllib.parse", "uuid", "warnings", "weakref", "zoneinfo",
)  # fmt: skip
"""Modules that solutions import. They are harmless here: the kernel limits what a program may do,
and the referee's tests allow every module."""
_MEMORY_MB = 4096
"""Megabytes of memory, as in evalplus: some canonical solutions make gigabytes."""
_LONGEST_PROGRAM = 200_000
"""Characters."""
_WALL_FACTOR = 10
_MAX_BYTES = 32 << 20
UNKNOWN = object()
"""Stands for a value that is not available outside the sandbox; it equals nothing."""


@dataclass(frozen=True)
class SolutionOutput:
    """One value, as `sandboxed.Line` has it."""

    kind: str
    text: str

    def same_text(self, other: SolutionOutput) -> bool:
        """Whether both are the same value, by their texts or by the hashes of these."""
        kinds = {self.kind, other.kind}
        if kinds == {"text", "hash"}:
            hashes = {
                o.text if o.kind == "hash" else sandboxed.text_digest(o.text) for o in (self, other)
            }
            return len(hashes) == 1
        return len(kinds) == 1 and "opaque" not in kinds and self.text == other.text

    @property
    def value(self) -> Any:
        """The value; `UNKNOWN` if there is only a hash, or it is not a literal."""
        try:
            return literal.parse(self.text) if self.kind == "text" else UNKNOWN
        except literal.NotLiteral:
            return UNKNOWN


class ProgramRun(NamedTuple):
    """A program's outputs, and why there are no more."""

    outputs: list[SolutionOutput]
    reason: str = "error"
    detail: str = ""


class InputSet(NamedTuple):
    """Inputs on which a program runs in one process."""

    call: Callable[[], str]
    """Makes the call of `run`, which may have megabytes."""
    names: Sequence[str]
    """A name of each input, for people."""
    is_right: Callable[[int, SolutionOutput], bool]
    """Whether the output for the input at this position is right."""


def judge(
    programs: Sequence[str],
    tests: Callable[[int, int], InputSet | None],
    cpu_seconds: float,
    part_seconds: float,
) -> list[EvalVerdict]:
    """A verdict on each program, which runs up to the first test that it does not pass. `tests` are
    by the program's number and that of its process, 0, 1, ...; None: there are no more."""
    verdicts: dict[int, EvalVerdict] = {}
    for number, program in enumerate(programs):
        if not program.strip():
            verdicts[number] = EvalVerdict(False, NO_ANSWER)
        elif len(program) > _LONGEST_PROGRAM:
            verdicts[number] = EvalVerdict(False, "too long")
    for stage in count():
        left = {}
        for number in range(len(programs)):
            if number not in verdicts:
                if inputs := tests(number, stage):
                    left[number] = inputs
                else:
                    verdicts[number] = EvalVerdict(True, PASSED, "", programs[number])
        if not left:
            break
        runs = run((each.call() for each in left.values()), cpu_seconds, part_seconds)
        for (number, each), done in zip(left.items(), runs, strict=True):
            if failure := _first_failure(each, done):
                verdicts[number] = EvalVerdict(False, *failure, programs[number])
    return [verdicts[number] for number in range(len(programs))]


def _first_failure(inputs: InputSet, done: ProgramRun) -> tuple[str, str] | None:
    """(reason, detail) of the first output that is missing or not right; None if all are right."""
    for position, name in enumerate(inputs.names):
        if position >= len(done.outputs):
            return done.reason, f"{name} {done.detail}".strip()
        if not inputs.is_right(position, done.outputs[position]):
            return WRONG, name
    return None


def run(calls: Iterable[str], cpu_seconds: float, part_seconds: float) -> Iterator[ProgramRun]:
    """Results of calls of functions of `sandboxed`, each in a child of its own, in order. One may
    take `cpu_seconds` of processor time, and `part_seconds` for each input. Raises VerdictLost."""
    works = (SandboxWork("", (Call(SCRIPT, call),)) for call in calls)
    # An error keeps this frame: a stream that it left open would block the referee's next one.
    with closing(_referee(cpu_seconds, part_seconds).outcomes(works)) as stream:
        for (outcome,) in stream:
            yield _read(outcome)


@cache
def _referee(cpu_seconds: float, part_seconds: float) -> Referee:
    """Its workers end with this process."""
    return Referee(
        RefereeSettings(
            timeout=_WALL_FACTOR * cpu_seconds,
            cpu_seconds=cpu_seconds,
            part_seconds=part_seconds,
            prelude=inspect.getsource(sandboxed),
            memory_mb=_MEMORY_MB,
            max_output_chars=sandboxed.MAX_CHARS,
            modules=(*MODULES, *_MORE, "numpy"),
            required_modules=("numpy",),
            banned_names=(),
        )
    )


def _read(outcome: CallOutcome) -> ProgramRun:
    """The inverse of `sandboxed.record`, for text that a solution may have forged. Raises
    VerdictLost."""
    if outcome.reason is Reason.LOST:
        raise VerdictLost(
            "a program's process in the referee was ended from outside again and again, which no "
            "program can do; perhaps the machine has no memory left"
        )
    if outcome.reason is not Reason.OK:
        return ProgramRun([], str(outcome.reason), outcome.text[:200])
    try:
        record = json.loads(inflate(base64.b64decode(outcome.text, validate=True), _MAX_BYTES))
        if record.keys() != {"lines", "error"}:
            raise ValueError("not a record")
        outputs = [SolutionOutput(kind, text) for kind, text in record["lines"]]
        if not all(type(part) is str for o in outputs for part in (o.kind, o.text)):
            raise ValueError("not texts")
        return ProgramRun(outputs, "error", str(record["error"])[:200])
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return ProgramRun([], str(Reason.TAMPERED), str(error))
