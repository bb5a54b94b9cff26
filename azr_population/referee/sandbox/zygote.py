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
import resource
import select
import signal
import socket
import sys
import time
from typing import Any

from . import child, kernel, wire

_ENCODINGS = (
    "ascii", "latin_1", "utf_8", "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be", "utf_32",
    "unicode_escape", "raw_unicode_escape", "cp1252", "cp437", "hex_codec", "base64_codec",
    "rot_13", "punycode", "idna",
)  # fmt: skip
_NOBODY = 65534


def main() -> None:
    """Serve jobs on descriptor 0 until it closes. The options are one JSON line on it."""
    sock = socket.socket(fileno=os.dup(0))
    options = _read_options(sock)
    hello: dict[str, Any] = {"python": platform.python_version(), "layers": []}
    try:
        runner = _warm(options)
        zygote = Zygote(sock, options, runner, hello["layers"])
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
    register, os.register_at_fork = os.register_at_fork, lambda **_: None
    allowed = []
    try:
        for name in options["modules"]:
            try:
                importlib.import_module(name)
                allowed.append(name.partition(".")[0])
            except ImportError:
                if name in options["required"]:
                    raise
    finally:
        os.register_at_fork = register
    for name in ("_strptime", "stringprep", "ast", "linecache", "marshal"):
        importlib.import_module(name)
    for name in _ENCODINGS:
        "".encode(name) if name not in ("hex_codec", "base64_codec", "rot_13") else None
        importlib.import_module(f"encodings.{name}")
    importlib.import_module(f"{__package__}.screening")
    return child.prepare(
        frozenset(allowed), frozenset(options["banned_names"]), options["max_output_chars"]
    )


class Zygote:
    """One per worker. `layers` is filled with the layers in force: [name, in force, detail]."""

    def __init__(
        self,
        sock: socket.socket,
        options: dict[str, Any],
        runner: child.Runner,
        layers: list[list[Any]],
    ) -> None:
        self.sock = sock
        self.runner = runner
        self.region_bytes = options["region_bytes"]
        self.memory_bytes = options["memory_bytes"]
        self.pid = os.getpid()
        self.install_filter = None
        self.has_pidfd = hasattr(os, "pidfd_open")
        self._close_inherited()
        self._confine_self(layers)
        gc.collect()
        gc.freeze()
        gc.disable()

    def _close_inherited(self) -> None:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        keep = self.sock.fileno()
        os.closerange(3, keep)
        os.closerange(keep + 1, 4096)

    def _confine_self(self, layers: list[list[Any]]) -> None:
        """Put in force, once for all children, what a zygote can live with itself."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        size = _virtual_bytes() + self.memory_bytes + self.region_bytes
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        for name, step in (
            ("no_new_privs", kernel.forbid_new_privileges),
            ("not dumpable", kernel.forbid_inspection),
            ("landlock", kernel.landlock_deny_all),
        ):
            try:
                result = step()
                layers.append([name, True, f"ABI {result}" if name == "landlock" else ""])
            except OSError as error:
                layers.append([name, False, str(error)])
        try:
            if not kernel.seccomp_available():
                raise OSError(f"no filter for {platform.system()} on {platform.machine()}")
            self.install_filter = kernel.prepared_filter()  # type: ignore[assignment]
            self._try_filter()
            layers.append(["seccomp", True, ""])
        except OSError as error:
            self.install_filter = None
            layers.append(["seccomp", False, str(error)])

    def _try_filter(self) -> None:
        """Install the filter in a throw-away child and see it bite."""
        pid = os.fork()
        if pid == 0:
            try:
                self.install_filter()  # type: ignore[misc]
                try:
                    os.getppid()
                except OSError:
                    os._exit(7)
                os._exit(7 if os.getppid() == -1 else 1)
            finally:
                os._exit(1)
        status = os.waitpid(pid, 0)[1]
        if os.waitstatus_to_exitcode(status) != 7:
            raise OSError("the kernel took the filter but does not enforce it")

    def serve(self) -> None:
        """Fork a child per job until the socket closes."""
        while True:
            header = self.sock.recv(wire.JOB.size, socket.MSG_PEEK | socket.MSG_WAITALL)
            if not header:
                return
            if len(header) < wire.JOB.size:
                continue
            _, calls, budget = wire.JOB.unpack(header)
            region = child.Region(self.region_bytes)
            pid = os.fork()
            if pid == 0:
                self._child(region)
            ended = self._watch(pid, region, calls, budget * 1000)
            frames = region.frames()
            end, code, in_flight, used = ended
            self.sock.sendall(wire.REPORT.pack(end, code, in_flight, used, len(frames)))
            if len(frames):
                self.sock.sendall(frames)
            frames.release()
            region.close()

    def _watch(
        self, pid: int, region: child.Region, calls: int, budget: int
    ) -> tuple[int, int, int, int]:
        """Wait for a child within its budget (ns), kill it beyond, and reap it.

        A call may use half of the time that is left, the last call all of it: so one that hangs
        leaves time for those behind it, and the whole task ends within its budget.
        """
        began = time.monotonic_ns()
        end = began + budget
        pidfd = os.pidfd_open(pid)
        try:
            poller = select.poll()
            poller.register(pidfd, select.POLLIN)
            limit, timed_out, current = end if calls <= 1 else began + budget // 2, False, -1
            while True:
                wait = max((limit - time.monotonic_ns()) // 1_000_000 + 1, 0)
                if poller.poll(wait):
                    break
                current, started = region.progress()
                now = time.monotonic_ns()
                started = min(max(started, began), now)
                last = current >= calls - 1
                limit = end if last else min(started + (end - started) // 2, end)
                if now >= limit:
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                    timed_out = True
                    break
            status = os.waitpid(pid, 0)[1]
        finally:
            os.close(pidfd)
        used = min((time.monotonic_ns() - began) // 1000, 0xFFFFFFFF)
        code = os.waitstatus_to_exitcode(status)
        in_flight = min(max(region.progress()[0], -1), calls)
        if timed_out and code == -signal.SIGKILL:
            return wire.END_TIMEOUT, code, in_flight, used
        if code == 0:
            return wire.END_DONE, 0, in_flight, used
        return wire.END_SIGNAL if in_flight >= 0 else wire.END_LOST, code, in_flight, used

    def _child(self, region: child.Region) -> None:
        """The child's whole life; it never returns."""
        code = 1
        try:
            kernel.die_with_parent(signal.SIGKILL)
            if os.getppid() != self.pid:
                os._exit(1)
            length, _, budget = wire.JOB.unpack(_receive(self.sock, wire.JOB.size))
            body = _receive(self.sock, length)
            seconds = budget // 1_000_000 + 2
            os.closerange(0, self.sock.fileno() + 1)
            for limit, value in (
                (resource.RLIMIT_CPU, seconds),
                (resource.RLIMIT_FSIZE, 0),
                (resource.RLIMIT_NPROC, 0),
                (resource.RLIMIT_NOFILE, 0),
                (resource.RLIMIT_MEMLOCK, 0),
            ):
                resource.setrlimit(limit, (value, value))
            if self.install_filter is not None:
                self.install_filter()
            self.runner.run(wire.unpack(body), region)
            code = 0
        except MemoryError:
            region.put(wire.PROGRAM, wire.MEMORY)
            code = 0
        finally:
            os._exit(code)


def _receive(sock: socket.socket, length: int) -> bytes:
    parts, missing = [], length
    while missing:
        part = sock.recv(min(missing, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _virtual_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


if __name__ == "__main__":
    sys.exit("the zygote is started by azr_population.referee")
