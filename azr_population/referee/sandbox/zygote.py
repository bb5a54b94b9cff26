"""The zygote: a small warm interpreter that forks one confined child per job.

It never runs model-written text and never even reads it: the child takes its job from the socket
itself. The zygote keeps the time, ends the child, and hands on the bytes that the child left in
shared memory. It dies when the trainer's end of the socket closes.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import platform
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

from . import child, kernel, layers, wire
from .region import Region

_ENCODINGS = (
    "ascii", "latin_1", "utf_8", "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be", "utf_32",
    "unicode_escape", "raw_unicode_escape", "cp1252", "cp437", "hex_codec", "base64_codec",
    "rot_13", "punycode", "idna",
)  # fmt: skip


def main() -> None:
    """Serve jobs on descriptor 0 until it closes. The options are one JSON line on it."""
    sock = socket.socket(fileno=os.dup(0))
    options = _read_options(sock)
    hello: dict[str, Any] = {"python": platform.python_version()}
    try:
        runner = _warm(options)
        _close_inherited(sock)
        spare = options["memory_bytes"] + 2 * options["region_bytes"]
        lines = layers.confine_zygote(spare, options["leave_out"])
        install, line = layers.seccomp_layer(options["leave_out"])
        hello["layers"] = [line, *lines, *layers.descriptor_lines()]
        zygote = Zygote(sock, options["region_bytes"], runner, install, options["cpu_seconds"])
    except Exception as error:
        hello["error"] = f"{type(error).__name__}: {error}"
        sock.sendall(json.dumps(hello).encode() + b"\n")
        raise SystemExit(1) from None
    sock.sendall(json.dumps(hello).encode() + b"\n")
    zygote.serve()


def _read_options(sock: socket.socket) -> dict[str, Any]:
    line = b""
    while not line.endswith(b"\n"):
        byte = sock.recv(1)
        if not byte:
            raise SystemExit(0)
        line += byte
    options: dict[str, Any] = json.loads(line)
    return options


def _warm(options: dict[str, Any]) -> child.Runner:
    """Import what programs may use: no child can read a file to import it later."""
    sys.path += options["path"]
    register, os.register_at_fork = os.register_at_fork, lambda **_: None
    allowed = []
    try:
        importlib.import_module("random")  # for the child's use, allowed to programs or not
        for name in options["modules"]:
            try:
                importlib.import_module(name)
                allowed.append(name.partition(".")[0])
            except ImportError:
                if name in options["required"]:
                    raise
    finally:
        os.register_at_fork = register
    for name in ("_strptime", "stringprep", "unicodedata", "ast", "linecache", "marshal"):
        importlib.import_module(name)
    for name in _ENCODINGS:
        "".encode(name) if name not in ("hex_codec", "base64_codec", "rot_13") else None
        importlib.import_module(f"encodings.{name}")
    importlib.import_module(f"{__package__}.screening")
    return child.prepare(
        frozenset(allowed), frozenset(options["banned_names"]), options["max_output_chars"]
    )


def _close_inherited(sock: socket.socket) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    keep = sock.fileno()  # the pipes that a zygote makes later lie above it
    os.closerange(3, keep)
    os.closerange(keep + 1, 4096)
    os.environ.clear()


class Zygote:
    """Serves jobs one after the other, each in a child of its own.

    The next child is forked before its job is there, so that it need not wait for the fork.
    """

    def __init__(
        self,
        sock: socket.socket,
        region_bytes: int,
        runner: child.Runner,
        install_filter: Callable[[], None] | None,
        cpu_seconds: float = 0.0,
    ) -> None:
        self.sock = sock
        self.cpu_seconds = cpu_seconds
        self.region_bytes = region_bytes
        self.runner = runner
        self.install_filter = install_filter
        self.pid = os.getpid()
        self.pidfd = layers.has_pidfd()
        self.start_read, self.start_write = os.pipe()
        self.taken_read, self.taken_write = os.pipe()
        os.set_blocking(self.taken_read, False)
        runner.warm_up()
        if install_filter is not None:
            kernel.warm_up()
        gc.collect()
        gc.freeze()
        gc.disable()

    def serve(self) -> None:
        """Fork a child per job until the socket closes."""
        while True:
            region = Region(self.region_bytes)
            pid = os.fork()
            if pid == 0:
                self._child(region)
            header = b""
            while len(header) < wire.JOB.size:
                header = self.sock.recv(wire.JOB.size, socket.MSG_PEEK | socket.MSG_WAITALL)
                if not header:
                    return  # the waiting child dies with this process
            _, calls, budget = wire.JOB.unpack(header)
            os.write(self.start_write, b"!")
            report = self._watch(pid, region, calls, budget * 1000)
            frames = region.frames()
            self.sock.sendall(wire.REPORT.pack(*report, len(frames)))
            if len(frames):
                self.sock.sendall(frames)
            frames.release()
            region.close()

    def _watch(self, pid: int, region: Region, calls: int, budget: int) -> tuple[int, int, int]:
        """Wait for a child within its budget (ns), kill it beyond, and reap it.

        A call may use half of the time that is left, the last call all of it: so one that hangs
        leaves time for those behind it, and the whole task ends within its budget. The child
        says which call is in flight and since when; lying about it only costs it its own time.
        """
        began = time.monotonic_ns()
        end = began + budget
        limit, timed_out = end if calls <= 1 else began + budget // 2, False
        with _Ended(pid, self.sock, self.pidfd) as ended:
            while not ended.within(limit - time.monotonic_ns()):
                current, started = region.progress()
                now = time.monotonic_ns()
                started = min(max(started, began), now)
                last = current >= calls - 1
                limit = end if last else min(started + (end - started) // 2, end)
                if now >= limit:
                    ended.kill()
                    timed_out = True
                    break
            code = ended.reap()
        used = min((time.monotonic_ns() - began) // 1000, 0xFFFFFFFF)
        if not self._taken():
            end_kind = wire.END_LOST
        elif code == -signal.SIGKILL:
            end_kind = wire.END_TIMEOUT if timed_out else wire.END_KILLED
        else:
            end_kind = wire.END_DONE if code == 0 else wire.END_SIGNAL
        return end_kind, code, used

    def _taken(self) -> bool:
        """Whether the child had read its whole job: its program could not unsay it."""
        try:
            return os.read(self.taken_read, 1) == b"!"
        except BlockingIOError:
            return False

    def _child(self, region: Region) -> None:
        """The child's whole life; it never returns. Up to `run` it runs our code only."""
        code = 1
        try:
            layers.die_with(self.pid)
            if os.read(self.start_read, 1) != b"!":
                os._exit(1)
            length, _, budget = wire.JOB.unpack(_receive(self.sock, wire.JOB.size))
            body = _receive(self.sock, length)
            os.write(self.taken_write, b"!")
            os.closerange(0, self.taken_write + 1)
            layers.limit_child(budget // 1_000_000 + 2)
            if self.cpu_seconds:
                # Its signal ends the child; a program that finds a way to ignore it still meets
                # the deadline.
                signal.setitimer(signal.ITIMER_PROF, self.cpu_seconds)
            if self.install_filter is not None:
                self.install_filter()
            self.runner.run_all(wire.unpack(body), region)
            code = 0
        except MemoryError:
            region.put(wire.PROGRAM, wire.MEMORY)
            code = 0
        finally:
            os._exit(code)


class _Ended:
    """Waits for a child's end and kills it: by pidfd, or by number where there is none."""

    def __init__(self, pid: int, sock: socket.socket, pidfd: bool) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid) if pidfd else -1
        self.status: int | None = None
        self.poller = select.poll()
        self.poller.register(sock, select.POLLRDHUP)
        if pidfd:
            self.poller.register(self.pidfd, select.POLLIN)

    def __enter__(self) -> _Ended:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.pidfd >= 0:
            os.close(self.pidfd)

    def within(self, nanoseconds: int) -> bool:
        """Whether the child ends within that time. Where the trainer has gone, all ends here."""
        until = time.monotonic_ns() + nanoseconds
        milliseconds = max(nanoseconds // 1_000_000 + 1, 0) if self.pidfd >= 0 else 1
        while True:
            ready = [number for number, _ in self.poller.poll(milliseconds)]
            if ready and self.pidfd not in ready:
                os._exit(0)
            if self.pidfd >= 0:
                return bool(ready)
            # Without a pidfd nothing wakes us: look every millisecond.
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
                return True
            if time.monotonic_ns() >= until:
                return False

    def kill(self) -> None:
        """End the child at once. It is not reaped yet, so its number is still its own."""
        if self.pidfd >= 0:
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        else:
            os.kill(self.pid, signal.SIGKILL)

    def reap(self) -> int:
        """The exit code, negative for a signal; waits for the end."""
        status = self.status if self.status is not None else os.waitpid(self.pid, 0)[1]
        return os.waitstatus_to_exitcode(status)


def _receive(sock: socket.socket, length: int) -> bytes:
    parts, missing = [], length
    while missing:
        part = sock.recv(min(missing, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    sys.exit("the zygote is started by azr_population.referee")
