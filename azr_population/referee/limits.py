"""The referee's settings."""

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
"""Standard modules that a program may import: they only compute."""

BANNED_NAMES = (
    "_getframe", "_current_frames", "currentframe", "f_back", "f_globals", "f_locals", "f_builtins",
    "gi_frame", "cr_frame", "ag_frame", "tb_frame", "__traceback__", "__globals__", "__builtins__",
    "__subclasses__", "__closure__", "__loader__", "__spec__", "_getframemodulename",
)  # fmt: skip
"""Names that only a program uses that inspects the interpreter. They are banned for fairness to the
student that reads the program; the sandbox is safe without this list."""


BOUNDS: dict[str, tuple[float, float]] = {
    "workers": (0, 256),
    "timeout": (0.01, 3600),
    "cpu_seconds": (0, 3600),
    "part_seconds": (0, 3600),
    "memory_mb": (16, 1 << 20),
    "max_output_chars": (1, 1 << 20),
}
"""Lower and upper bound of each field. A worker takes 20 MB; with 1 MB no child reaches its job."""


@dataclass(frozen=True)
class RefereeSettings:
    """Limits of each execution, in validation and grading alike: `timeout` in wall-clock seconds,
    `memory_mb` beyond the bare interpreter."""

    workers: int = 0
    """Zygotes, one core each; 0: one per core this process may use."""
    timeout: float = 60.0
    cpu_seconds: float = 0.5
    """CPU seconds of one execution, and together of the seven second runs of a program that used
    chance or a clock; 0: only the timeout counts. With this limit, and a timeout well
    above it, verdicts do not depend on how busy the machine is, unless a program takes between half
    and twice the limit: a busy core needs that many more seconds for the same program."""
    memory_mb: int = 256
    max_output_chars: int = 10_000
    """Limit of one output; a literal has at most `literal.MAX_CHARS`, a script's text may be
    longer."""
    allow_unsandboxed: bool = False
    """Run even if the platform cannot confine programs. Model-written code then runs as you."""
    modules: tuple[str, ...] = MODULES
    part_seconds: float = 0.0
    """CPU seconds of each part of a script that is timed by `time_part`; 0: no limit. Enforced from
    outside the child, to within a few milliseconds; a script that calls `time_part` itself has
    `cpu_seconds` alone."""
    prelude: str = ""
    """Trusted Python source that each worker executes once at its start; scripts have its names in
    their namespaces. It may call `time_part(True)` and `time_part(False)` around a part."""
    required_modules: tuple[str, ...] = ()
    """Modules among `modules` that must be installed; they may come from site-packages."""
    banned_names: tuple[str, ...] = BANNED_NAMES
    leave_out: tuple[str, ...] = ()
    """Layers to leave out, for tests of the others; without seccomp it needs
    `allow_unsandboxed`."""

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
        """The number of workers."""
        return self.workers or len(os.sched_getaffinity(0))
