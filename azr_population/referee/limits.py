"""How a referee is set up."""

import os
from dataclasses import dataclass

from azr_population.errors import UserError

MODULES = (
    "abc", "array", "base64", "binascii", "bisect", "calendar", "cmath", "collections",
    "collections.abc", "colorsys", "contextlib", "copy", "dataclasses", "datetime", "decimal",
    "difflib", "enum", "fnmatch", "fractions", "functools", "graphlib", "heapq", "html",
    "itertools", "json", "keyword", "math", "numbers", "operator", "queue", "random", "re",
    "secrets", "statistics", "string", "struct", "textwrap", "types", "typing", "unicodedata",
    "zlib",
)  # fmt: skip
"""The standard modules that a program may import: those that compute and do nothing else."""

BANNED_NAMES = (
    "_getframe", "_current_frames", "currentframe", "f_back", "f_globals", "f_locals", "f_builtins",
    "gi_frame", "cr_frame", "ag_frame", "tb_frame", "__traceback__", "__globals__", "__builtins__",
    "__subclasses__", "__closure__", "__loader__", "__spec__", "_getframemodulename",
)  # fmt: skip
"""Names that only a program that studies its judge uses. A matter of fairness to the student who
reads the program, not of safety: the sandbox holds without them."""


BOUNDS: dict[str, tuple[float, float]] = {
    "workers": (0, 256),
    "timeout": (0.01, 3600),
    "cpu_seconds": (0, 3600),
    "part_seconds": (0, 3600),
    "memory_mb": (16, 1 << 20),
    "max_output_chars": (1, 1 << 20),
    "share": (1, 256),
}
"""The least and the most of each. A worker takes 20 MB; with 1 MB no child gets to its job."""


@dataclass(frozen=True)
class RefereeSettings:
    """The limits of each execution, be it a validation run or an answer: `timeout` in wall-clock
    seconds, `memory_mb` what it may allocate beyond the bare interpreter."""

    workers: int = 0
    """Zygotes, one core each; 0: one per core this process may use."""
    timeout: float = 2.0
    cpu_seconds: float = 0.0
    """CPU seconds of one execution, 0: only the timeout counts. On a busy machine verdicts depend
    on the wall clock; with this limit, and a timeout well above it, they do not."""
    memory_mb: int = 256
    max_output_chars: int = 10_000
    """Of one output; a literal has at most `literal.MAX_CHARS`, a script's text may be longer."""
    allow_unsandboxed: bool = False
    """Run even where the platform cannot confine. Model-written code then runs as you."""
    modules: tuple[str, ...] = MODULES
    part_seconds: float = 0.0
    """CPU seconds of each part that a script of the prelude's tells of (`time_part`), 0: no limit.
    Kept from outside the child, about to a few milliseconds."""
    prelude: str = ""
    """Python source of ours that each worker executes once, before it takes tasks: scripts find its
    names in their namespaces. In it `time_part(True)` begins a part of the work, and
    `time_part(False)` ends it."""
    required_modules: tuple[str, ...] = ()
    """Of `modules`, those whose absence is an error; they may come from site-packages."""
    banned_names: tuple[str, ...] = BANNED_NAMES
    share: int = 16
    """How many tasks go to a child together, if their programs are shareable (`sandbox.sharing`):
    then none can see or change what another does. The executions of any other program get a child
    each, and an answer that is a program shares with no other task. 1: no two tasks share; several
    times slower."""
    child_per_call: bool = False
    """A child for every single execution, however shareable; several times slower again."""
    leave_out: tuple[str, ...] = ()
    """Layers not to put on, for tests of the others; without seccomp `allow_unsandboxed` rules."""

    def __post_init__(self) -> None:
        for name, (least, most) in BOUNDS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise UserError(
                    f"referee.{name}={value}: a number from {least} to {most}",
                    key=f"referee.{name}",
                )

    @property
    def worker_count(self) -> int:
        """How many workers there are."""
        if self.workers > 0:
            return self.workers
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
