"""The memory through which jobs come to a child and results leave it."""

import mmap
from time import process_time_ns

from . import wire

HEAD = 64
"""Bytes before the frames: call in flight, 8 unused, bytes written, processor time in ns at which
the present part of the call began (-1: none is timed)."""


class Region:
    """The memory that a child shares with its zygote: its only way out.

    A resident child also finds its jobs there, in the `inbox`. The zygote reads what comes out when
    the child is dead or says that it is done. A child that scribbles here forges nothing but its
    own outputs, or those of the programs that it was shared with.
    """

    def __init__(self, size: int, inbox: int = 0) -> None:
        self.memory = mmap.mmap(-1, inbox + size)
        view = memoryview(self.memory)
        self.inbox, self.view = view[:inbox], view[inbox:]
        view.release()
        self.words = self.view[:32].cast("q")
        self.words[0] = self.words[3] = -1
        self.size = size

    def hide(self) -> None:
        """Keep it from children that are forked from now on."""
        if hasattr(mmap, "MADV_DONTFORK"):
            self.memory.madvise(mmap.MADV_DONTFORK)

    def reset(self) -> None:
        """Forget the frames: the next job begins."""
        self.words[0], self.words[2], self.words[3] = -1, 0, -1

    def begin(self, call: int) -> None:
        """Note which call runs now."""
        self.words[0] = call

    def time_part(self, begins: bool) -> None:
        """Note that a part of the call begins, or that it has ended."""
        self.words[3] = process_time_ns() if begins else -1

    def put(self, call: int, status: int, text: str = "") -> None:
        """Append a frame; where it does not fit, one that says ALONE."""
        data = text.encode("utf-8", "backslashreplace")
        used = self.words[2]
        at = HEAD + used
        room = self.size - at - wire.FRAME.size
        if len(data) > room:
            if room < 0:
                return
            status, data = wire.ALONE, b""
        wire.FRAME.pack_into(self.view, at, call, status, len(data))
        start = at + wire.FRAME.size
        self.view[start : start + len(data)] = data
        self.words[2] = used + wire.FRAME.size + len(data)

    def in_flight(self) -> int:
        """The call in flight, -1: none yet."""
        return self.words[0]

    def part(self) -> int:
        """Processor time in ns at which the present part began; negative: none is timed."""
        return self.words[3]

    def frames(self) -> memoryview:
        """The bytes of all frames."""
        used = min(max(self.words[2], 0), self.size - HEAD)
        return self.view[HEAD : HEAD + used]

    def close(self) -> None:
        """Unmap; the next child gets fresh zeroed memory."""
        self.words.release()
        self.view.release()
        self.inbox.release()
        self.memory.close()
