"""The wire format: jobs in, frames out.

A job is a header and a body that the trusted side marshals. What comes back is never unmarshalled:
it is a sequence of frames, one for each call, with a status and a bounded UTF-8 text.
"""

import marshal
import struct
from typing import NamedTuple

JOB = struct.Struct("<IQQ")
"""Length of the body in bytes, limit of one call in microseconds, limit of all calls in
microseconds."""
REPORT = struct.Struct("<BiI")
"""The end of the child (END_*), its exit code (negative: a signal), length of the frames in
bytes."""
FRAME = struct.Struct("<BI")
"""Status of a call, length of its text in bytes. The frames are in the order of the calls."""

# How a child ended. DONE: normally. SIGNAL: by a fault or an exit code. KILLED: by a signal that a
# confined program cannot send itself (the system ran out of memory, or another process sent it), so
# the job is repeated.
END_DONE, END_TIMEOUT, END_SIGNAL, END_KILLED = range(4)

STATUSES = (
    "ok", "syntax_error", "banned", "no_function", "error", "memory", "not_literal", "too_large",
    "bad_input", "alone",
)  # fmt: skip
"""The status of a call, or of a program: the words of `verdicts.Reason`, and `alone`: the call was
not made, or not to its end; it needs a separate child."""
OK, SYNTAX_ERROR, BANNED, NO_FUNCTION, ERROR, MEMORY, NOT_LITERAL, TOO_LARGE, BAD_INPUT, ALONE = (
    range(len(STATUSES))
)

# Kinds of calls. EXPRESSION: the text is any argument list, evaluated in the program's namespace.
# LITERAL: an argument list of literals. ARGUMENTS: as EXPRESSION, but `f` is not called and the
# output is the argument list as literals. SCRIPT: the program is a script; the text is a last
# expression whose `str` is the output, or '' for what the script printed. A script's output is
# opaque text, not a literal.
EXPRESSION, LITERAL, ARGUMENTS, SCRIPT = range(4)


class Report(NamedTuple):
    """The end of a child, with its frames: see `REPORT`."""

    end: int
    code: int
    frames: bytes


class Call(NamedTuple):
    """One execution: the arguments as source text and the kind of call.

    `again`: with other random numbers, another clock and other addresses (see `sandbox.chance`).
    """

    kind: int
    arguments: str
    again: bool = False


class SandboxWork(NamedTuple):
    """A program and the calls of its `f`, each in a fresh namespace.

    `alone`: its calls do not share a child. `stop_at_failure`: calls behind one that fails are not
    made and get the same failure.
    """

    source: str
    calls: tuple[Call, ...]
    imports: tuple[str, ...] = ()
    alone: bool = False
    stop_at_failure: bool = False


def pack(work: SandboxWork, call_seconds: float, seconds: float) -> bytes:
    """The bytes that send a work to a child."""
    calls = [tuple(call) for call in work.calls]
    body = marshal.dumps((work.source, calls, work.imports, work.stop_at_failure))
    times = (max(int(limit * 1e6), 1) for limit in (call_seconds, seconds))
    return JOB.pack(len(body), *times) + body


def unpack(body: bytes) -> SandboxWork:
    """The inverse of `pack`, without the header."""
    source, calls, imports, stop = marshal.loads(body)
    return SandboxWork(source, tuple(Call(*call) for call in calls), imports, stop_at_failure=stop)


def frames(data: bytes, calls: int) -> list[tuple[int, str]] | None:
    """(status, text) of the calls that ended, or None if our code cannot have written the bytes."""
    frames = []
    at = 0
    try:
        while at < len(data):
            status, length = FRAME.unpack_from(data, at)
            at += FRAME.size + length
            frames.append((status, str(data[at - length : at], "utf-8")))
    except (struct.error, UnicodeDecodeError):
        return None
    sound = at == len(data) and len(frames) <= calls
    return frames if sound and all(status <= ALONE for status, _ in frames) else None
