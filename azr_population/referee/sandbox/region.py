"""Shared memory for a child's result."""

import mmap
from time import process_time_ns

from . import wire

HEAD = 64
"""Bytes before the frame: bytes written, processor time in ns at which the current part of the call
began (-1: none is timed)."""


class Region:
    """Memory that a child shares with its zygote: its only output.

    The zygote reads the results when the child is dead. A child that overwrites this memory can
    only forge its own outputs.
    """

    def __init__(self, size: int) -> None:
        self.memory = mmap.mmap(-1, size)
        self.view = memoryview(self.memory)
        self.words = self.view[:16].cast("q")
        self.words[1] = -1
        self.size = size

    def hide(self) -> None:
        """Hides it from children that are forked later."""
        self.memory.madvise(mmap.MADV_DONTFORK)

    def time_part(self, begins: bool) -> None:
        """Stores that a part of the call begins, or has ended."""
        self.words[1] = process_time_ns() if begins else -1

    def put(self, status: int, text: str = "") -> None:
        """Stores the call's frame."""
        data = text.encode("utf-8", "backslashreplace")
        start = HEAD + wire.FRAME.size
        if len(data) > self.size - start:
            status, data = wire.TOO_LARGE, b""
        wire.FRAME.pack_into(self.view, HEAD, status, len(data))
        self.view[start : start + len(data)] = data
        self.words[0] = wire.FRAME.size + len(data)

    def part(self) -> int:
        """Processor time in ns at which the current part began; negative: none is timed."""
        return self.words[1]

    def frame(self) -> memoryview:
        """The bytes of the frame."""
        used = min(max(self.words[0], 0), self.size - HEAD)
        return self.view[HEAD : HEAD + used]

    def close(self) -> None:
        """Unmaps it; the next child gets fresh zeroed memory."""
        self.words.release()
        self.view.release()
        self.memory.close()
