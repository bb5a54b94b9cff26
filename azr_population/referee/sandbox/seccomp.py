"""A system call filter as a classic BPF program, assembled by hand and installed through ctypes.

A child needs memory, clocks and its own end, and nothing else: it holds no descriptor, and its
results go into memory that it shares with the zygote. Three answers:

- ALLOWED calls run. mmap and mprotect run unless they ask for executable pages.
- REFUSED calls fail with EPERM: those that an honest program may make (`open`, `stat`, `sleep`), so
  that it sees an ordinary OSError.
- every other call kills the process with SIGSYS: fork, exec, kill, ptrace, prctl, io_uring, bpf.

Layout of `struct seccomp_data`: nr at 0, arch at 4, instruction pointer at 8, args at 16.
"""

from __future__ import annotations

import struct

from .syscalls import number

ALLOWED = (
    "mmap", "munmap", "brk", "futex", "madvise", "mremap", "mprotect", "exit_group",
    "clock_gettime", "rt_sigreturn", "getrandom", "sched_yield", "exit", "gettimeofday", "time",
    "clock_getres", "rt_sigprocmask", "sigaltstack", "close",
)  # fmt: skip
REFUSED = (
    "read", "write", "open", "stat", "fstat", "lstat", "poll", "lseek", "rt_sigaction", "ioctl",
    "pread64", "pwrite64", "readv", "writev", "access", "pipe", "select", "dup", "dup2",
    "nanosleep", "getpid", "socket", "socketpair", "uname", "fcntl", "getdents", "getcwd", "chdir",
    "rename", "mkdir", "rmdir", "creat", "link", "unlink", "symlink", "readlink", "chmod", "umask",
    "getrlimit", "getrusage", "sysinfo", "times", "getuid", "getgid", "geteuid", "getegid",
    "getppid", "getgroups", "gettid", "sched_getaffinity", "getdents64", "clock_nanosleep",
    "openat", "mkdirat", "newfstatat", "unlinkat", "renameat", "readlinkat", "faccessat",
    "pselect6", "ppoll", "dup3", "pipe2", "renameat2", "statx", "openat2", "faccessat2",
)  # fmt: skip
_NO_EXECUTABLE_PAGES = ("mmap", "mprotect")
_PROT_EXEC = 4

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

KILL_PROCESS = 0x80000000
ERRNO_EPERM = 0x00050000 | 1
ALLOW = 0x7FFF0000

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARG2_LOW = 0, 4, 32


def program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter for a machine as (code, jump if true, jump if false, constant) instructions."""
    lines = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, KILL_PROCESS),
        (_LOAD, 0, 0, _NR),
    ]
    if machine == "x86_64":  # the same kernel entry also takes the x32 numbering
        lines += [(_JUMP_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, KILL_PROCESS)]
    for names, answer in ((ALLOWED, ALLOW), (REFUSED, ERRNO_EPERM)):
        for name in names:
            call = number(name, machine)
            if call is None:
                continue
            if name in _NO_EXECUTABLE_PAGES:
                lines += [
                    (_JUMP_EQUAL, 0, 4, call),
                    (_LOAD, 0, 0, _ARG2_LOW),
                    (_JUMP_BITS, 0, 1, _PROT_EXEC),
                    (_RETURN, 0, 0, ERRNO_EPERM),
                    (_RETURN, 0, 0, ALLOW),
                ]
            else:
                lines += [(_JUMP_EQUAL, 0, 1, call), (_RETURN, 0, 0, answer)]
    lines.append((_RETURN, 0, 0, KILL_PROCESS))
    return lines


def assemble(lines: list[tuple[int, int, int, int]]) -> bytes:
    """The instructions as an array of `struct sock_filter`."""
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
