"""The filter, run instruction by instruction for both machines."""

import struct

import pytest

from azr_population.referee.sandbox import seccomp
from azr_population.referee.sandbox.seccomp import MACHINES, NUMBERS, syscall_number


def decide(machine, call, arguments=(), arch=None):
    """What the filter answers: a classic BPF interpreter for the instructions that it uses."""
    data = struct.pack(
        "=IIQ6Q",
        call,
        seccomp.AUDIT_ARCH[machine] if arch is None else arch,
        0,
        *(*arguments, 0, 0, 0, 0, 0, 0)[:6],
    )
    lines = seccomp.program(machine)
    at = accumulator = 0
    while True:
        code, if_true, if_false, constant = lines[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, constant)
        elif code == 0x15:
            at += if_true if accumulator == constant else if_false
        elif code == 0x35:
            at += if_true if accumulator >= constant else if_false
        elif code == 0x45:
            at += if_true if accumulator & constant else if_false
        else:
            assert code == 0x06
            return constant


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_gets_the_answer_of_its_list(machine):
    names = {syscall_number(name, machine): name for name in NUMBERS}
    for call in range(600):
        name = names.get(call)
        expected = seccomp.KILL_PROCESS
        if name in seccomp.ALLOWED:
            expected = seccomp.ALLOW
        elif name in NUMBERS:
            expected = seccomp.ERRNO_EPERM
        assert decide(machine, call) == expected, (call, name)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["mmap", "mprotect"])
def test_executable_pages_are_refused(machine, name):
    call = syscall_number(name, machine)
    assert decide(machine, call, (0, 4096, 1 | 2)) == seccomp.ALLOW
    for protection in (4, 5, 7, 1 << 32 | 4):
        assert decide(machine, call, (0, 4096, protection)) == seccomp.ERRNO_EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_other_numberings_are_killed(machine):
    other = 0x40000003  # i386
    assert decide(machine, syscall_number("mmap", machine), arch=other) == seccomp.KILL_PROCESS
    x32 = 0x40000000
    for name in seccomp.ALLOWED:
        if syscall_number(name, machine) is not None:
            assert decide(machine, x32 + syscall_number(name, machine)) == seccomp.KILL_PROCESS
    for call in (0x7FFFFFFF, 0xFFFFFFFF):
        assert decide(machine, call) == seccomp.KILL_PROCESS


KILLING = {
    "clone": (56, 220), "execve": (59, 221), "kill": (62, 129), "ptrace": (101, 117),
    "prctl": (157, 167), "prlimit64": (302, 261), "seccomp": (317, 277), "clone3": (435, 435),
}  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
def test_what_matters_kills(machine):
    assert not KILLING.keys() & NUMBERS.keys()
    for numbers in KILLING.values():
        assert decide(machine, numbers[MACHINES[machine]]) == seccomp.KILL_PROCESS
    for name in ("read", "write", "openat", "socket"):
        assert decide(machine, syscall_number(name, machine)) == seccomp.ERRNO_EPERM


def test_the_program_is_small_and_its_numbers_distinct():
    for machine, column in MACHINES.items():
        lines = seccomp.program(machine)
        assert len(lines) < 200
        assert len(seccomp.assemble(lines)) == 8 * len(lines)
        numbers_used = [
            numbers[column] for numbers in NUMBERS.values() if numbers[column] is not None
        ]
        assert len(numbers_used) == len(set(numbers_used))
