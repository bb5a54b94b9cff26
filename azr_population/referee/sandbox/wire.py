"""What crosses the wall, and how: jobs in, frames out.

A job is a header and a body that is marshalled by the trusted side. What comes back is never
unmarshalled: it is a run of frames, each a call's number, a status and a bounded UTF-8 text.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Sequence
from typing import NamedTuple

JOB = struct.Struct("<IIQ")
"""Length of the body in bytes, number of calls, time budget in microseconds."""
REPORT = struct.Struct("<BiII")
"""How the child ended (END_*), its exit code (negative: a signal), microseconds used, length of the
frames in bytes."""
FRAME = struct.Struct("<IBI")
"""Number of the call, its status, length of its text in bytes."""
PROGRAM = 0xFFFFFFFF
"""In a frame, instead of a call's number: the status is the whole program's."""

# How a child ended. LOST: before it had its job. KILLED: by a SIGKILL that was not ours and that a
# confined program cannot send itself: the system was out of memory, or somebody else did it; the
# job is to be run again.
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
# ALONE: the program is not plain, so it may not share a child and was not executed.
LAST_STATUS = ALONE

# How a call's text is read: as any argument list, as one of literals only, or (for a program that
# is a script and not a function) as a last expression whose `str` is the output; '' asks for what
# the script printed. A script's output is opaque text, not a literal.
EXPRESSION, LITERAL, SCRIPT = range(3)


class Call(NamedTuple):
    """One execution: the arguments as source text, and how they are read."""

    kind: int
    arguments: str


class Work(NamedTuple):
    """A program and the calls of its `f` to make, in one child.

    `banned` are module names that its import statements may not name (in addition to what the
    referee does not allow anyway), `statements` statement kinds that it may not hold: `assert`,
    `raise`, `try`, `except`. `alone`: it never shares a child, however plain it is.
    """

    source: str
    calls: tuple[Call, ...]
    imports: tuple[str, ...] = ()
    banned: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    alone: bool = False


def pack(works: Sequence[Work], budget: float) -> bytes:
    """The bytes that send works whose calls may together take `budget` seconds.

    Several works share a child: then their calls are numbered through.
    """
    body = marshal.dumps(
        tuple(
            (
                work.source,
                tuple((call.kind, call.arguments) for call in work.calls),
                tuple(work.imports),
                tuple(work.banned),
                tuple(work.statements),
            )
            for work in works
        )
    )
    calls = sum(len(work.calls) for work in works)
    return JOB.pack(len(body), calls, max(int(budget * 1e6), 1)) + body


def unpack(body: bytes) -> list[Work]:
    """The works in a body that `pack` made."""
    return [
        Work(source, tuple(Call(*call) for call in calls), imports, banned, statements)
        for source, calls, imports, banned, statements in marshal.loads(body)
    ]


def frames(data: bytes | memoryview) -> list[tuple[int, int, str]] | None:
    """The frames in what a child wrote, or None where its bytes are not a run of frames."""
    found = []
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
        found.append((call, status, text))
        at += length
    return found
