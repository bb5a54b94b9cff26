"""The wire format: jobs in, a frame out.

A job is a header and a body that the trusted side marshals. What comes back is never unmarshalled:
it is one frame with a status and a bounded UTF-8 text.
"""

import marshal
import struct
from typing import NamedTuple

JOB = struct.Struct("<IQ")
"""Length of the body in bytes, limit of the call in microseconds."""
REPORT = struct.Struct("<BiI")
"""The end of the child (END_*), its exit code (negative: a signal), length of the frame."""
FRAME = struct.Struct("<BI")
"""Status of the call, length of its text in bytes."""

# How a child ended. DONE: normally. SIGNAL: by a fault or an exit code. KILLED: by a signal that a
# confined program cannot send itself (the system ran out of memory, or another process sent it), so
# the job is repeated.
END_DONE, END_TIMEOUT, END_SIGNAL, END_KILLED = range(4)

STATUSES = (
    "ok", "syntax_error", "banned", "no_function", "error", "memory", "not_literal", "too_large",
    "bad_input",
)  # fmt: skip
"""The status of a call, or of a program: words of `verdicts.Reason`."""
OK, SYNTAX_ERROR, BANNED, NO_FUNCTION, ERROR, MEMORY, NOT_LITERAL, TOO_LARGE, BAD_INPUT = range(
    len(STATUSES)
)

# Kinds of calls. EXPRESSION: the text is any argument list, evaluated in the program's namespace.
# LITERAL: an argument list of literals. ARGUMENTS: as EXPRESSION, but `f` is not called and the
# output is the argument list as literals. SCRIPT: the program is a script; the text is a last
# expression whose `str` is the output, or '' for what the script printed. A script's output is
# opaque text, not a literal.
EXPRESSION, LITERAL, ARGUMENTS, SCRIPT = range(4)


class Report(NamedTuple):
    """The end of a child, with the bytes of its frame: see `REPORT`."""

    end: int
    code: int
    frame: bytes


class Call(NamedTuple):
    """One execution: the arguments as source text and the kind of call.

    `again`: with other random numbers, another clock and other addresses (see `sandbox.chance`).
    """

    kind: int
    arguments: str
    again: bool = False


class SandboxWork(NamedTuple):
    """A program and the calls of its `f`, each in a separate child.

    `stop_at_failure`: calls behind one that fails are not made and get the same failure.
    """

    source: str
    calls: tuple[Call, ...]
    imports: tuple[str, ...] = ()
    stop_at_failure: bool = False


def pack(work: SandboxWork, seconds: float) -> bytes:
    """The bytes that send a work of one call to a child."""
    (call,) = work.calls
    body = marshal.dumps((work.source, tuple(call), work.imports))
    return JOB.pack(len(body), max(int(seconds * 1e6), 1)) + body


def unpack(body: bytes) -> SandboxWork:
    """The inverse of `pack`, without the header."""
    source, call, imports = marshal.loads(body)
    return SandboxWork(source, (Call(*call),), imports)


def frame(data: bytes) -> tuple[int, str] | None:
    """(status, text) of a call; None: it has not ended. Raises ValueError: our code cannot have
    written the bytes."""
    if not data:
        return None
    if len(data) < FRAME.size:
        raise ValueError("a part of a frame")
    status, length = FRAME.unpack_from(data)
    if length != len(data) - FRAME.size or status >= len(STATUSES):
        raise ValueError("not a frame")
    return status, str(data[FRAME.size :], "utf-8")
