"""Shared memory for a child's results."""

import mmap
from time import process_time_ns

from . import wire

HEAD = 64
"""Bytes before the frames: current call, 8 unused, bytes written, processor time in ns at which the
current part of the call began (-1: none is timed)."""


class Region:
    """Memory that a child shares with its zygote: its only output.

    The zygote reads the results when the child is dead. A child that overwrites this memory can
    only forge its own outputs.
    """

    def __init__(self, size: int) -> None:
        self.memory = mmap.mmap(-1, size)
        self.view = memoryview(self.memory)
        self.words = self.view[:32].cast("q")
        self.words[0] = self.words[3] = -1
        self.size = size

    def hide(self) -> None:
        """Hides it from children that are forked later."""
        self.memory.madvise(mmap.MADV_DONTFORK)

    def begin(self, call: int) -> None:
        """Stores the number of the current call."""
        self.words[0] = call

    def time_part(self, begins: bool) -> None:
        """Stores that a part of the call begins, or has ended."""
        self.words[3] = process_time_ns() if begins else -1

    def put(self, status: int, text: str = "") -> None:
        """Appends the next call's frame; if it does not fit, one with the status ALONE."""
        data = text.encode("utf-8", "backslashreplace")
        used = self.words[2]
        at = HEAD + used
        room = self.size - at - wire.FRAME.size
        if len(data) > room:
            if room < 0:
                return
            status, data = wire.ALONE, b""
        wire.FRAME.pack_into(self.view, at, status, len(data))
        start = at + wire.FRAME.size
        self.view[start : start + len(data)] = data
        self.words[2] = used + wire.FRAME.size + len(data)

    def in_flight(self) -> int:
        """The current call; -1: none yet."""
        return self.words[0]

    def part(self) -> int:
        """Processor time in ns at which the current part began; negative: none is timed."""
        return self.words[3]

    def frames(self) -> memoryview:
        """The bytes of all frames."""
        used = min(max(self.words[2], 0), self.size - HEAD)
        return self.view[HEAD : HEAD + used]

    def close(self) -> None:
        """Unmaps it; the next child gets fresh zeroed memory."""
        self.words.release()
        self.view.release()
        self.memory.close()
