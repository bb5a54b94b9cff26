"""The trainer's handle on one zygote: start it, send jobs, take reports, kill it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from azr_population.errors import UserError

from .limits import RefereeSettings
from .sandbox import wire

if TYPE_CHECKING:
    from .jobs import Job

_SANDBOX = Path(__file__).parent / "sandbox"
_BOOT = """
import sys
sys.path[:] = [entry for entry in sys.path if entry]
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("sandbox", sys.argv[1] + "/__init__.py",
                               submodule_search_locations=[sys.argv[1]])
sys.modules["sandbox"] = module_from_spec(spec)
spec.loader.exec_module(sys.modules["sandbox"])
from sandbox.kernel import fix_addresses
fix_addresses(sys.argv[2:])
from sandbox.zygote import main
main()
"""
# From 3.13 on a module's AttributeError reads the current folder, which no child can access.
_SAFE_PATH = ("-P",) if sys.version_info >= (3, 11) else ()
_INTERPRETER = (sys.executable, "-s", "-S", "-B", *_SAFE_PATH, "-X", "utf8")
START_SECONDS = 60.0
_BUFFER_BYTES = 1 << 16


class Report(NamedTuple):
    """How a child ended, with its frames: see `wire.REPORT`."""

    end: int
    code: int
    microseconds: int
    frames: bytes


class Worker:
    """One zygote process: started at once, ready for jobs after its greeting.

    A fresh interpreter is executed instead of forking the trainer: that is cheap and safe whatever
    memory and threads the trainer has.
    """

    def __init__(self, settings: RefereeSettings, starts: int = 1) -> None:
        self.starts = starts
        """Starts in this place since a worker was last ready."""
        self.ready = False
        self.jobs: deque[Job] = deque()
        self.since = now()
        """When its first job became the first, or when it was started."""
        try:
            self.sock, zygote_end = socket.socketpair()
            with zygote_end:
                self.process = subprocess.Popen(
                    [*_INTERPRETER, "-c", _BOOT, str(_SANDBOX), *settings.leave_out],
                    stdin=zygote_end.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    env=_environment(),
                    cwd="/",
                    start_new_session=True,
                )
        except OSError as error:
            raise cannot_start(error) from error
        self.outgoing: deque[memoryview] = deque()
        self.incoming = bytearray()
        # One buffer for all reads: `recv` would shrink a large block at each call and fragment the
        # trainer's heap.
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self.sock.sendall(json.dumps(_options(settings)).encode() + b"\n")
        self.sock.setblocking(False)

    def hello(self) -> dict[str, Any] | None:
        """The greeting, or None if it has not arrived. Raises UserError: the zygote died or failed
        while starting."""
        reports = self.pull()
        line, end, rest = self.incoming.partition(b"\n")
        if not end and reports is not None:
            return None
        hello: dict[str, Any] = json.loads(line) if end else {"error": self._last_words()}
        if "error" in hello:
            raise UserError(f"referee: a worker did not start: {hello['error']}")
        self.incoming = rest
        return hello

    def _last_words(self) -> str:
        self.process.kill()
        stderr = self.process.stderr
        lines = (stderr.read() if stderr else b"").decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it died"

    def send(self, job: bytes) -> None:
        """Queues a job and writes what the socket accepts now."""
        self.outgoing.append(memoryview(job))
        self.push()

    def push(self) -> None:
        """Writes queued bytes until the socket is full. A dead zygote is noticed when reading."""
        try:
            while self.outgoing:
                head = self.outgoing[0]
                sent = self.sock.send(head)
                if sent < len(head):
                    self.outgoing[0] = head[sent:]
                else:
                    self.outgoing.popleft()
        except BlockingIOError:
            return
        except OSError:
            self.outgoing.clear()

    def pull(self) -> list[Report] | None:
        """Reads what has arrived; returns the complete reports, or None if the zygote is gone."""
        gone = False
        try:
            while True:
                length = self.sock.recv_into(self._buffer)
                self.incoming += self._buffer[:length]
                gone = length == 0
                if length < len(self._buffer):
                    break
        except BlockingIOError:
            pass
        except OSError:
            gone = True
        reports: list[Report] = []
        size = wire.REPORT.size
        while self.ready and len(self.incoming) >= size:
            *head, length = wire.REPORT.unpack_from(self.incoming)
            if len(self.incoming) < size + length:
                break
            end, code, used = head
            frames = bytes(self.incoming[size : size + length])
            reports.append(Report(end, code, used, frames))
            del self.incoming[: size + length]
        return None if gone and not reports else reports

    def close(self) -> None:
        """Kills the zygote; its children die with it. Idempotent."""
        self.sock.close()
        self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()


def cannot_start(error: OSError) -> UserError:
    """The error if the system cannot start a worker."""
    return UserError(
        f"referee: a worker cannot be started ({error.strerror}); each takes 3 open files "
        "(`ulimit -n`) and 20 MB; referee.workers sets how many there are"
    )


def _environment() -> dict[str, str]:
    """Nothing of the trainer's environment, except what its interpreter needs to start.

    LD_BIND_NOW: symbols are resolved once in the zygote and not again in each child.
    """
    environment = {"PYTHONHASHSEED": "0", "LD_BIND_NOW": "1"}
    for name in ("LD_LIBRARY_PATH", "PYTHONHOME"):
        if name in os.environ:
            environment[name] = os.environ[name]
    return environment


def _options(settings: RefereeSettings) -> dict[str, Any]:
    extra = [entry for entry in sys.path if entry] if settings.required_modules else []
    return {
        "modules": list(dict.fromkeys((*settings.modules, *settings.required_modules))),
        "required": list(settings.required_modules),
        "path": extra,
        "leave_out": list(settings.leave_out),
        "banned_names": list(settings.banned_names),
        "max_output_chars": settings.max_output_chars,
        "cpu_seconds": settings.cpu_seconds,
        "part_seconds": settings.part_seconds,
        "prelude": settings.prelude,
        "memory_bytes": settings.memory_mb << 20,
        "region_bytes": 4096 + 96 * settings.max_output_chars,
    }


def now() -> float:
    """Seconds on a monotonic clock."""
    return time.monotonic()
