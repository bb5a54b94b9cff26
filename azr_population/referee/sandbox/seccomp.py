"""A system call filter as a classic BPF program, assembled by hand and installed through ctypes.

A child needs only memory and exit: its results go into memory that it shares with the zygote, and
its one descriptor closes when it ends. There are three answers:

- ALLOWED calls run. mmap and mprotect run unless they request executable pages.
- the others in NUMBERS fail with EPERM, so that an honest program (`open`, `stat`, `sleep`) sees
  an ordinary OSError. CLOCKS and random bytes are among them, so that results do not change between
  runs.
- every other call kills the process with SIGSYS: fork, exec, kill, ptrace, prctl, io_uring, bpf.

Layout of `struct seccomp_data`: nr at 0, arch at 4, instruction pointer at 8, args at 16.
"""

import struct

NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "open": (2, None), "close": (3, 57), "stat": (4, None),
    "fstat": (5, 80), "lstat": (6, None), "poll": (7, None), "lseek": (8, 62), "mmap": (9, 222),
    "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "ioctl": (16, 29), "pread64": (17, 67),
    "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66), "access": (21, None),
    "pipe": (22, None), "select": (23, None), "sched_yield": (24, 124), "mremap": (25, 216),
    "madvise": (28, 233), "dup": (32, 23), "dup2": (33, None), "nanosleep": (35, 101),
    "getpid": (39, 172), "socket": (41, 198), "socketpair": (53, 199), "exit": (60, 93),
    "uname": (63, 160), "fcntl": (72, 25), "getdents": (78, None), "getcwd": (79, 17),
    "chdir": (80, 49), "rename": (82, None), "mkdir": (83, None), "rmdir": (84, None),
    "creat": (85, None), "link": (86, None), "unlink": (87, None), "symlink": (88, None),
    "readlink": (89, None), "chmod": (90, None), "umask": (95, 166), "gettimeofday": (96, 169),
    "getrlimit": (97, 163), "getrusage": (98, 165), "sysinfo": (99, 179), "times": (100, 153),
    "getuid": (102, 174), "getgid": (104, 176), "geteuid": (107, 175), "getegid": (108, 177),
    "getppid": (110, 173), "getgroups": (115, 158), "sigaltstack": (131, 132), "gettid": (186, 178),
    "time": (201, None), "futex": (202, 98), "sched_getaffinity": (204, 123),
    "getdents64": (217, 61), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "exit_group": (231, 94), "openat": (257, 56),
    "mkdirat": (258, 34), "newfstatat": (262, 79), "unlinkat": (263, 35), "renameat": (264, 38),
    "readlinkat": (267, 78), "faccessat": (269, 48), "pselect6": (270, 72), "ppoll": (271, 73),
    "dup3": (292, 24), "pipe2": (293, 59), "renameat2": (316, 276), "getrandom": (318, 278),
    "statx": (332, 291), "close_range": (436, 436), "openat2": (437, 437), "faccessat2": (439, 439),
}  # fmt: skip
"""Numbers of the calls that do not kill, by name for (x86_64, aarch64); None: the machine has none.
From the kernel's syscall_64.tbl and asm-generic/unistd.h."""

MACHINES = {"x86_64": 0, "aarch64": 1}

LANDLOCK_CREATE_RULESET = 444
LANDLOCK_RESTRICT_SELF = 446


def syscall_number(name: str, machine: str) -> int | None:
    """The number of a call on a machine (a name from `platform.machine()`), or None."""
    return NUMBERS[name][MACHINES[machine]]


ALLOWED = (
    "mmap", "munmap", "brk", "futex", "madvise", "mremap", "mprotect", "exit_group",
    "rt_sigreturn", "sched_yield", "exit", "rt_sigprocmask", "sigaltstack",
)  # fmt: skip
CLOCKS = ("clock_gettime", "gettimeofday", "time", "clock_getres")
"""Refused unless the parts of a program are timed."""
_NO_EXECUTABLE_PAGES = ("mmap", "mprotect")
_PROT_EXEC = 4

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

KILL_PROCESS = 0x80000000
ERRNO_EPERM = 0x00050000 | 1
ALLOW = 0x7FFF0000

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARG2_LOW = 0, 4, 32
_UNLESS_EXECUTABLE = -1  # the answer depends on the third argument, of mmap and mprotect

Instruction = tuple[int, int, int, int]
"""(code, jump if true, jump if false, constant)"""


def answers(machine: str, clocks: bool = False) -> dict[int, int]:
    """The filter's answer by call number; KILL_PROCESS for every other number."""
    answers: dict[int, int] = {}
    for name in NUMBERS:
        allowed = name in ALLOWED or (clocks and name in CLOCKS)
        answer = ALLOW if allowed else ERRNO_EPERM
        if name in _NO_EXECUTABLE_PAGES:
            answer = _UNLESS_EXECUTABLE
        if (call := syscall_number(name, machine)) is not None:
            answers[call] = answer
    return answers


def program(machine: str, clocks: bool = False) -> list[Instruction]:
    """The filter of a child for a machine (a name from `platform.machine()`).

    Numbers are looked up by bisection over runs with the same answer. At installation the kernel
    evaluates a filter for every call number, so a long list of comparisons would cost each child a
    tenth of its life.
    """
    table = answers(machine, clocks)
    runs = [(0, table.get(0, KILL_PROCESS))]
    for call in range(1, max(table) + 2):
        answer = table.get(call, KILL_PROCESS)
        if answer != runs[-1][1]:
            runs.append((call, answer))
    # The last run is everything above the highest known number: x32 calls on x86_64 among it.
    return [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, KILL_PROCESS),
        (_LOAD, 0, 0, _NR),
        *_bisect(runs),
    ]


def _bisect(runs: list[tuple[int, int]]) -> list[Instruction]:
    """Code that finds a number's run. `runs` are (first number, answer)."""
    if len(runs) == 1:
        answer = runs[0][1]
        if answer >= 0:
            return [(_RETURN, 0, 0, answer)]
        test = [(_LOAD, 0, 0, _ARG2_LOW), (_JUMP_BITS, 0, 1, _PROT_EXEC)]
        return [*test, (_RETURN, 0, 0, ERRNO_EPERM), (_RETURN, 0, 0, ALLOW)]
    middle = len(runs) // 2
    below, above = _bisect(runs[:middle]), _bisect(runs[middle:])
    if len(below) > 255:
        raise ValueError("the filter is too long for the jumps of classic BPF")
    return [(_JUMP_AT_LEAST, len(below), 0, runs[middle][0]), *below, *above]


def assemble(lines: list[Instruction]) -> bytes:
    """The instructions as an array of `struct sock_filter`."""
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
