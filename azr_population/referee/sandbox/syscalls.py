"""System call numbers by name, for the two machines the filter knows: (x86_64, aarch64).

From the kernel's tables (x86: syscall_64.tbl, aarch64: asm-generic/unistd.h).
None: the machine has no such call.
"""

NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "open": (2, None), "close": (3, 57), "stat": (4, None),
    "fstat": (5, 80), "lstat": (6, None), "poll": (7, None), "lseek": (8, 62), "mmap": (9, 222),
    "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "ioctl": (16, 29),
    "pread64": (17, 67), "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66),
    "access": (21, None), "pipe": (22, None), "select": (23, None), "sched_yield": (24, 124),
    "mremap": (25, 216), "madvise": (28, 233), "dup": (32, 23), "dup2": (33, None),
    "nanosleep": (35, 101), "getpid": (39, 172), "socket": (41, 198), "socketpair": (53, 199),
    "clone": (56, 220), "execve": (59, 221), "exit": (60, 93), "kill": (62, 129),
    "uname": (63, 160), "fcntl": (72, 25), "getdents": (78, None), "getcwd": (79, 17),
    "chdir": (80, 49), "rename": (82, None), "mkdir": (83, None), "rmdir": (84, None),
    "creat": (85, None), "link": (86, None), "unlink": (87, None), "symlink": (88, None),
    "readlink": (89, None), "chmod": (90, None), "umask": (95, 166), "gettimeofday": (96, 169),
    "getrlimit": (97, 163), "getrusage": (98, 165), "sysinfo": (99, 179), "times": (100, 153),
    "ptrace": (101, 117), "getuid": (102, 174), "getgid": (104, 176), "geteuid": (107, 175),
    "getegid": (108, 177), "getppid": (110, 173), "getgroups": (115, 158), "prctl": (157, 167),
    "sigaltstack": (131, 132), "gettid": (186, 178), "time": (201, None), "futex": (202, 98),
    "sched_getaffinity": (204, 123), "getdents64": (217, 61), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "exit_group": (231, 94),
    "openat": (257, 56), "mkdirat": (258, 34), "newfstatat": (262, 79), "unlinkat": (263, 35),
    "renameat": (264, 38), "readlinkat": (267, 78), "faccessat": (269, 48), "pselect6": (270, 72),
    "ppoll": (271, 73), "dup3": (292, 24), "pipe2": (293, 59), "prlimit64": (302, 261),
    "renameat2": (316, 276), "seccomp": (317, 277), "getrandom": (318, 278), "statx": (332, 291),
    "clone3": (435, 435), "close_range": (436, 436), "openat2": (437, 437),
    "faccessat2": (439, 439),
}  # fmt: skip

MACHINES = {"x86_64": 0, "aarch64": 1}

LANDLOCK_CREATE_RULESET = 444
LANDLOCK_RESTRICT_SELF = 446


def number(name: str, machine: str) -> int | None:
    """The number of the named call on a machine (as `platform.machine()` names it), or None."""
    return NUMBERS[name][MACHINES[machine]]
