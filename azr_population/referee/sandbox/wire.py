"""The wire format: jobs in, frames out.

A job is a header and a body that the trusted side marshals. What comes back is never unmarshalled:
it is a sequence of frames, each with a call's number, a status and a bounded UTF-8 text.
"""

import marshal
import struct
from collections.abc import Sequence
from typing import NamedTuple

JOB = struct.Struct("<I?IQQ")
"""Length of the body in bytes, whether it goes to the resident child, number of calls, limit of one
call in microseconds, limit of all calls in microseconds."""
REPORT = struct.Struct("<BiII")
"""How the child ended (END_*), its exit code (negative: a signal), microseconds used, length of the
frames in bytes."""
FRAME = struct.Struct("<IBI")
"""Number of the call, its status, length of its text in bytes."""
INBOX_BYTES = 1 << 20
"""The longest body that the resident child accepts."""

# How a child ended. DONE: normally. LOST: before it had its job. SIGNAL: by a fault or an exit
# code. KILLED: by a signal that a confined program cannot send itself (the system ran out of
# memory, or another process sent it), so the job is repeated.
END_DONE, END_TIMEOUT, END_SIGNAL, END_LOST, END_KILLED = range(5)

# The status of a call, or of a program.
(
    OK,
    SYNTAX_ERROR,
    BANNED,
    NO_FUNCTION,
    ERROR,
    MEMORY,
    NOT_LITERAL,
    TOO_LARGE,
    BAD_INPUT,
    INPUT_NOT_LITERAL,
    INPUT_TOO_LARGE,
    ALONE,
) = range(12)
# ALONE: the call was not made, or not to its end; it needs a separate child.
LAST_STATUS = ALONE

# Kinds of calls. EXPRESSION: the text is any argument list, evaluated in the program's namespace.
# LITERAL: an argument list of literals. ARGUMENTS: as EXPRESSION, but `f` is not called and the
# output is the argument list as literals. SCRIPT: the program is a script; the text is a last
# expression whose `str` is the output, or '' for what the script printed. A script's output is
# opaque text, not a literal.
EXPRESSION, LITERAL, ARGUMENTS, SCRIPT = range(4)


class Call(NamedTuple):
    """One execution: the arguments as source text and the kind of call.

    `again`: with other random numbers, another clock and other addresses (see `sandbox.chance`).
    """

    kind: int
    arguments: str
    again: bool = False


class SandboxWork(NamedTuple):
    """A program and the calls of its `f`, each in a fresh namespace.

    `isolated`: it never shares a child with other works. `alone`: its calls do not share one
    either. `required_calls`: if one of that many first calls fails, the calls behind it are not
    made and get the same failure.
    """

    source: str
    calls: tuple[Call, ...]
    imports: tuple[str, ...] = ()
    isolated: bool = False
    alone: bool = False
    required_calls: int = 0


def pack(
    works: Sequence[SandboxWork], call_seconds: float, seconds: float, resident: bool = False
) -> bytes:
    """The bytes that send works to a child; their calls are numbered consecutively."""
    body = marshal.dumps(
        [
            (
                work.source,
                [tuple(call) for call in work.calls],
                tuple(work.imports),
                work.required_calls,
            )
            for work in works
        ]
    )
    calls = sum(len(work.calls) for work in works)
    times = (max(int(limit * 1e6), 1) for limit in (call_seconds, seconds))
    return JOB.pack(len(body), resident, calls, *times) + body


def unpack(body: bytes | memoryview) -> list[SandboxWork]:
    """The inverse of `pack`."""
    return [
        SandboxWork(
            source,
            tuple(Call(*call) for call in calls),
            imports,
            required_calls=required,
        )
        for source, calls, imports, required in marshal.loads(body)
    ]


def frames(data: bytes | memoryview) -> list[tuple[int, int, str]] | None:
    """The frames that a child wrote, or None if the bytes are not a sequence of frames."""
    frames = []
    at, end = 0, len(data)
    while at < end:
        if end - at < FRAME.size:
            return None
        call, status, length = FRAME.unpack_from(data, at)
        at += FRAME.size
        if status > LAST_STATUS or length > end - at:
            return None
        try:
            text = str(data[at : at + length], "utf-8")
        except UnicodeDecodeError:
            return None
        frames.append((call, status, text))
        at += length
    return frames
