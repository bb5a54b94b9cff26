"""System calls that Python does not wrap, through ctypes: prctl, seccomp, Landlock.

Each function raises OSError if the kernel refuses.
"""

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable, Sequence

from . import seccomp
from .seccomp import LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF

_libc = ctypes.CDLL(None, use_errno=True)
# Ready-made conversions: each child calls it twice.
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.mmap.restype = ctypes.c_void_p
_libc.getauxval.argtypes, _libc.getauxval.restype = [ctypes.c_ulong], ctypes.c_ulong

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_PR_GET_SECCOMP = 21
_SECCOMP_MODE_FILTER = 2
_LANDLOCK_VERSION_QUERY = 1
_PROT_READ, _BLANK = 1, 0x32  # private, anonymous, at a fixed address
_AT_RANDOM = 25
FIXED = "fixed addresses"
_NO_RANDOMISATION, _ASK = 0x0040000, 0xFFFFFFFF  # personalities

# What a Landlock ruleset can handle, by ABI version: (file system rights, TCP rights, scopes).
_LANDLOCK_RIGHTS = {
    1: ((1 << 13) - 1, 0, 0),
    2: ((1 << 14) - 1, 0, 0),
    3: ((1 << 15) - 1, 0, 0),
    4: ((1 << 15) - 1, 3, 0),
    5: ((1 << 16) - 1, 3, 0),
    6: ((1 << 16) - 1, 3, 3),
}


def _prctl(option: int, first: int = 0, second: int = 0) -> int:
    result: int = _libc.prctl(option, first, second, 0, 0)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def die_with_parent(signal: int) -> None:
    """Lets the kernel send this process a signal when its parent dies (prctl PDEATHSIG)."""
    _prctl(_PR_SET_PDEATHSIG, signal)


def forbid_new_privileges() -> None:
    """No exec can grant a privilege from now on (prctl NO_NEW_PRIVS); seccomp requires it."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def forbid_inspection() -> None:
    """Other processes of the same user can neither trace this one nor open its /proc files."""
    _prctl(_PR_SET_DUMPABLE, 0)


def clock_pages() -> list[tuple[int, int]]:
    """The pages in which the kernel shows clocks and random bytes, readable without a call."""
    with open("/proc/self/maps") as file:
        fields = [line.split() for line in file if "[vvar" in line]
    ranges = [[int(end, 16) for end in field[0].split("-")] for field in fields]
    return [(low, high - low) for low, high in ranges]


def stop_clocks(pages: Sequence[tuple[int, int]]) -> None:
    """Replaces those pages by blank ones. Readers then make system calls, which the filter
    judges."""
    for address, length in pages:
        if _libc.mmap(address, length, _PROT_READ, _BLANK, -1, 0) != address:
            raise OSError(ctypes.get_errno(), "the clock page cannot be replaced")


def forget_random_bytes() -> None:
    """Blanks the random bytes that the kernel gives each new program."""
    address = _libc.getauxval(_AT_RANDOM)
    if address:
        ctypes.memset(address, 0, 16)


def warm_up() -> None:
    """Makes the children's calls without effect, so that their code is loaded before a fork."""
    for _ in range(25):
        _prctl(_PR_GET_SECCOMP)


def fix_addresses(leave_out: Sequence[str]) -> None:
    """Restarts this interpreter without address space randomisation; does nothing if refused."""
    if fixed_addresses() or FIXED in leave_out:
        return
    _libc.personality(ctypes.c_ulong(_NO_RANDOMISATION))
    if fixed_addresses():
        os.execv(sys.executable, sys.orig_argv)


def fixed_addresses() -> bool:
    """Whether this process has the same addresses at each start."""
    now = _libc.personality(ctypes.c_ulong(_ASK))
    return now >= 0 and bool(now & _NO_RANDOMISATION)


def landlock_deny_all() -> str:
    """Gives up all file system rights, TCP, and signals and abstract sockets to other processes.

    Handles all rights of the kernel's ABI and allows none. Returns what that is.
    """
    version: int = _libc.syscall(
        ctypes.c_long(LANDLOCK_CREATE_RULESET), None, ctypes.c_size_t(0), _LANDLOCK_VERSION_QUERY
    )
    if version <= 0:
        raise OSError("this kernel has no Landlock")
    files, tcp, scopes = _LANDLOCK_RIGHTS[min(version, max(_LANDLOCK_RIGHTS))]
    attributes = struct.pack("=QQQ", files, tcp, scopes)
    size = 8 if version < 4 else 16 if version < 6 else 24
    ruleset = _libc.syscall(
        ctypes.c_long(LANDLOCK_CREATE_RULESET), attributes, ctypes.c_size_t(size), 0
    )
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset failed")
    try:
        if _libc.syscall(ctypes.c_long(LANDLOCK_RESTRICT_SELF), ruleset, 0) < 0:
            raise OSError(ctypes.get_errno(), "landlock_restrict_self failed")
    finally:
        os.close(ruleset)
    more = (", no TCP" if version >= 4 else "") + (", no signals" if version >= 6 else "")
    return f"ABI {version}: no files{more}"


def seccomp_available() -> bool:
    """Whether the kernel has seccomp filters and this machine's call numbers are known."""
    if platform.machine() not in seccomp.AUDIT_ARCH:
        return False
    try:
        _prctl(_PR_GET_SECCOMP)
    except OSError:
        return False
    return True


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def prepared_filter(clocks: bool = False) -> Callable[[], None]:
    """Assembles the filter; the returned callable installs it in the calling process."""
    lines = seccomp.program(platform.machine(), clocks)
    code = ctypes.create_string_buffer(seccomp.assemble(lines))
    header = _Program(len(lines), ctypes.addressof(code))
    address = ctypes.addressof(header)

    def install() -> None:
        _ = code, header  # kept alive: the kernel reads both
        _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, address)

    return install
