"""The children of a referee's workers, and how they are killed from outside."""

import os
import signal
from contextlib import suppress
from pathlib import Path


def children_of(pid):
    """The process numbers of its children; none where it has ended."""
    with suppress(OSError):
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def kill_one(zygote, child):
    """Kills a worker's process, or its first `child` if it has one."""
    children = children_of(zygote.pid)
    if not (child and children):
        zygote.kill()
        return
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(children[0])
        if children[0] in children_of(zygote.pid):  # its number was not given away
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.close(descriptor)
