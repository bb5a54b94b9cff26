"""The memory through which a child's results leave it."""

from __future__ import annotations

import mmap
import time

from . import wire

HEAD = 64  # bytes before the frames: call in flight, its start in ns, bytes written


class Region:
    """The memory that a child shares with its zygote: its only way out.

    The zygote reads it when the child is dead. A child that scribbles here forges nothing but its
    own outputs.
    """

    def __init__(self, size: int) -> None:
        self.memory = mmap.mmap(-1, size)
        self.view = memoryview(self.memory)
        self.words = self.view[:24].cast("q")
        self.words[0] = -1
        self.size = size

    def begin(self, call: int) -> None:
        """Note which call runs now."""
        self.words[1] = time.monotonic_ns()
        self.words[0] = call

    def put(self, call: int, status: int, text: str = "", full: int = wire.TOO_LARGE) -> None:
        """Append a frame; where it does not fit, one of status `full`."""
        data = text.encode("utf-8", "backslashreplace")
        used = self.words[2]
        at = HEAD + used
        room = self.size - at - wire.FRAME.size
        if len(data) > room:
            if room < 0:
                return
            status, data = full, b""
        wire.FRAME.pack_into(self.view, at, call, status, len(data))
        start = at + wire.FRAME.size
        self.view[start : start + len(data)] = data
        self.words[2] = used + wire.FRAME.size + len(data)

    def progress(self) -> tuple[int, int]:
        """The call in flight (-1: none yet) and when it began (monotonic ns)."""
        return self.words[0], self.words[1]

    def frames(self) -> memoryview:
        """The bytes of all frames."""
        used = min(max(self.words[2], 0), self.size - HEAD)
        return self.view[HEAD : HEAD + used]

    def close(self) -> None:
        """Unmap; the next child gets fresh zeroed memory."""
        self.words.release()
        self.view.release()
        self.memory.close()


class Window:
    """One work's part of a region that several share: its calls numbered from 0."""

    def __init__(self, region: Region, first: int, count: int) -> None:
        self.region = region
        self.first = first
        self.count = count

    def begin(self, call: int) -> None:
        self.region.begin(self.first + call)

    def put(self, call: int, status: int, text: str = "") -> None:
        calls = range(self.count) if call == wire.PROGRAM else (call,)
        for number in calls:
            self.region.put(self.first + number, status, text, full=wire.ALONE)
