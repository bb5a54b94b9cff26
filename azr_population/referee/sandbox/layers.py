"""The layers of confinement in the order in which they are applied.

In the zygote, and so in all its children: privileges dropped, no_new_privs, not dumpable, Landlock
that allows nothing, an address space limit. In each child before it runs a program: limits that a
zygote could not work with, no descriptors, and the system call filter.

Each layer alone stops most attacks; tests run the corpus with one left out at a time.
"""

import os
import platform
import resource
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic  # programs get another, put in its place before layers are tested

from . import kernel

_NOBODY = 65534
_FIXED = "the same in every worker"
_RANDOM = "refused: a program's second run goes to another worker"
CLOCKS = "no clocks"
_PROBES = 3  # another process may signal one of them
_BITES = 7  # the exit code of an effective layer
Line = tuple[str, bool, str]
"""A layer's name, whether it is in force, and a detail."""


def confine_zygote(spare_bytes: int, leave_out: Sequence[str]) -> list[Line]:
    """Applies what all children inherit. `spare_bytes`: address space beyond the current use."""
    lines: list[Line] = []
    used = _address_space()
    limits = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ]
    if used:
        limits.append((resource.RLIMIT_AS, used + spare_bytes))
    _be_first_to_go()
    for limit, value in limits:
        resource.setrlimit(limit, (value, value))
    steps: tuple[tuple[str, Callable[[], str | None]], ...] = (
        ("not root", _drop_root),
        ("no_new_privs", kernel.forbid_new_privileges),
        ("not dumpable", kernel.forbid_inspection),
        ("landlock", kernel.landlock_deny_all),
    )
    for name, step in steps:
        try:
            left_out = name in leave_out
            lines.append((name, not left_out, "left out" if left_out else step() or ""))
        except OSError as error:
            lines.append((name, False, str(error)))
    fixed = kernel.fixed_addresses()
    return [*lines, (kernel.FIXED, fixed, _FIXED if fixed else _RANDOM)]


def _drop_root() -> str:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    return f"workers run as user {os.geteuid()}"


Install = Callable[[], None]


def _nothing() -> None:
    """In place of a layer that is left out or impossible."""


def seccomp_layer(leave_out: Sequence[str], clocks: bool = False) -> tuple[Install, Line]:
    """A tested installer of the filter. `clocks`: whether children may read the clocks."""
    if "seccomp" in leave_out:
        return _nothing, ("seccomp", False, "left out")
    try:
        if not kernel.seccomp_available():
            raise OSError(f"no filter for {platform.system()} on {platform.machine()}")
        install = kernel.prepared_filter(clocks)
        _see_it_bite(install)
        kernel.warm_up()
    except OSError as error:
        return _nothing, ("seccomp", False, str(error))
    return install, ("seccomp", True, f"allow-list for {platform.machine()}")


def clock_layer(leave_out: Sequence[str]) -> tuple[Install, Line]:
    """A tested function that removes the clocks readable without a call. The filter refuses calls
    that read clocks."""
    if CLOCKS in leave_out:
        return _nothing, (CLOCKS, False, "left out")
    try:
        pages = kernel.clock_pages()
        _see_it_bite(lambda: kernel.stop_clocks(pages), lambda: monotonic() > 0)
    except OSError as error:
        return _nothing, (CLOCKS, False, str(error))
    return (lambda: kernel.stop_clocks(pages)), (CLOCKS, True, "no program reads one")


def _see_it_bite(install: Install, bites: Callable[[], bool] = lambda: os.getppid() == -1) -> None:
    """Tests a layer in a temporary child; a filter is effective if the child cannot learn its
    parent's number."""
    for _ in range(_PROBES):
        pid = os.fork()
        if pid == 0:
            try:
                install()
                os._exit(_BITES if bites() else 1)
            finally:
                os._exit(1)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == _BITES:
            return
    raise OSError("the kernel does not accept or enforce it")


def limit_child(cpu_seconds: int) -> None:
    """No processes, no descriptors, and a limit of CPU time."""
    limits = [
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, 0),
        (resource.RLIMIT_CPU, cpu_seconds),
    ]
    for limit, value in limits:
        resource.setrlimit(limit, (value, value))


def die_with(zygote: int) -> None:
    """Ends this child when its zygote ends."""
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() != zygote:
        os._exit(1)


def _be_first_to_go() -> None:
    """If the machine runs out of memory, the kernel kills a worker's child and not the trainer."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _address_space() -> int:
    """Bytes of address space in use; 0: unknown."""
    with suppress(OSError), open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
    return 0
