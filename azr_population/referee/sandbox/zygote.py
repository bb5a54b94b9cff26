"""The zygote: a small warm interpreter that forks confined children and never runs a program.

A child takes one job and exits. The zygote does not read jobs: the child receives its own from the
socket. The zygote measures time, ends children, and forwards the bytes that they leave in shared
memory. It exits when the trainer's end of the socket closes.
"""

import codecs
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from time import clock_gettime_ns, monotonic_ns
from typing import Any, NamedTuple

from . import chance, child, kernel, layers, wire
from .region import Region

_ENCODINGS = (
    "ascii", "latin_1", "utf_8", "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be", "utf_32",
    "unicode_escape", "raw_unicode_escape", "cp1252", "cp437", "hex_codec", "base64_codec",
    "rot_13", "punycode", "idna",
)  # fmt: skip
_DESCRIPTORS = 64  # all of a zygote's descriptors are below
_HAS_JOB = b"!"
_CPUCLOCK_SCHED = 2  # the kernel's clock number for the processor time of a process
# Signals that a confined program can cause; any other was sent from outside.
_FAULTS = (
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGABRT,
    signal.SIGSYS,
)


def main() -> None:
    """Serves jobs on descriptor 0 until it closes. The options are its first line, as JSON."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # otherwise a program sees a KeyboardInterrupt
    sock = socket.socket(fileno=os.dup(0))
    with sock.makefile("rb", buffering=0) as file:
        options: dict[str, Any] = json.loads(file.readline())
    hello: dict[str, Any] = {}
    try:
        runner = _warm(options)
        _close_inherited(sock)
        timed = options["part_seconds"] > 0
        stop_clocks, clocks = layers.clock_layer([layers.CLOCKS] if timed else options["leave_out"])
        spare = options["memory_bytes"] + 2 * options["region_bytes"]
        lines = layers.confine_zygote(spare, options["leave_out"])
        seccomp, line = layers.seccomp_layer(options["leave_out"], timed)
        hello["layers"] = [line, *lines, clocks]
        zygote = Zygote(sock, options, runner, seccomp, stop_clocks)
    except Exception as error:
        hello["error"] = f"{type(error).__name__}: {error}"
        sock.sendall(json.dumps(hello).encode() + b"\n")
        raise SystemExit(1) from None
    sock.sendall(json.dumps(hello).encode() + b"\n")
    zygote.serve()


def _warm(options: dict[str, Any]) -> child.Runner:
    """Imports what programs may use, because children cannot read files."""
    sys.path += options["path"]
    register, os.register_at_fork = os.register_at_fork, lambda **_: None
    allowed = ["__future__"]
    try:
        importlib.import_module("random")  # the child needs it even if programs may not use it
        for name in (*allowed, *options["modules"]):
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
        codecs.lookup(name)
    chance.install()
    return child.Runner(
        frozenset(allowed),
        frozenset(options["banned_names"]),
        options["max_output_chars"],
        options["prelude"],
    )


def _close_inherited(sock: socket.socket) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    keep = sock.fileno()  # pipes that the zygote makes later have higher numbers
    os.closerange(3, keep)
    os.closerange(keep + 1, 4096)
    os.environ.clear()


class JobHeader(NamedTuple):
    """The header of a job: `wire.JOB`."""

    length: int
    microseconds: int


class ForkedChild:
    """A child, its shared memory, and the pipes that start it and report that it has its job. It
    cannot close its end of the second pipe, so that pipe closes when the child ends."""

    def __init__(self, pid: int, region: Region, start: int, done: int, trainer: int) -> None:
        self.pid = pid
        self.region = region
        self.start = start
        self.done = done
        self.poller = select.poll()
        self.poller.register(trainer, select.POLLRDHUP)
        self.poller.register(done, select.POLLIN)

    def wait_for_message(self, nanoseconds: int) -> bytes | None:
        """The child's message within that time; b'': it has ended; None: no message. Exits if the
        trainer is gone."""
        ready = [number for number, _ in self.poller.poll(nanoseconds // 1_000_000 + 1)]
        if self.done in ready:
            return os.read(self.done, 1)
        if ready:
            os._exit(0)
        return None

    def processor_time(self) -> int:
        """The child's processor time in nanoseconds, measured from outside; 0: unknown."""
        try:
            return clock_gettime_ns(~self.pid << 3 | _CPUCLOCK_SCHED)
        except OSError:
            return 0

    def was_stopped(self) -> bool:
        """Whether the child was stopped by a signal, even if it has continued."""
        try:
            how = os.WSTOPPED | os.WCONTINUED | os.WNOHANG
            return os.waitid(os.P_PID, self.pid, how) is not None
        except ChildProcessError:
            return False

    def end(self) -> int:
        """Ends the child if necessary and closes everything; returns its exit code, negative for a
        signal. The child is not reaped before, so its process number cannot be reused."""
        os.kill(self.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.start)
        os.close(self.done)
        return code


class Zygote:
    """Serves jobs one after the other. Children are forked in advance, so that no job waits for
    it."""

    def __init__(
        self,
        sock: socket.socket,
        options: dict[str, Any],
        runner: child.Runner,
        seccomp: layers.Install,
        stop_clocks: layers.Install,
    ) -> None:
        self.sock = sock
        self.cpu = int(options["cpu_seconds"] * 1e9)
        self.part = int(options["part_seconds"] * 1e9)
        self.region_bytes = options["region_bytes"]
        self.runner = runner
        self.seccomp = seccomp
        self.stop_clocks = stop_clocks
        self.pid = os.getpid()
        runner.warm_up()
        kernel.forget_random_bytes()
        gc.collect()
        self.settled = chance.settle()
        gc.freeze()
        gc.disable()

    def serve(self) -> None:
        """Serves jobs until the socket closes; all children die with this process."""
        child = self._fork()
        while job := self._next_job():
            self._serve(child, job)
            child.region.close()
            # The next child must not see the region or the job.
            del child, job
            child = self._fork()

    def _next_job(self) -> JobHeader | None:
        header = self.sock.recv(wire.JOB.size, socket.MSG_PEEK | socket.MSG_WAITALL)
        return JobHeader(*wire.JOB.unpack(header)) if len(header) == wire.JOB.size else None

    def _serve(self, child: ForkedChild, job: JobHeader) -> None:
        """Starts a child on a job and reports its results."""
        with suppress(BrokenPipeError):  # it was killed from outside
            os.write(child.start, b"!")
        end = self._wait(child, job)
        code = child.end()
        end = _end(code, end)
        frame = child.region.frame()
        self.sock.sendall(wire.REPORT.pack(end, code, len(frame)) + bytes(frame))
        frame.release()

    def _wait(self, child: ForkedChild, job: JobHeader) -> int:
        """Waits for a child's end or the end of its time; returns END_*. END_KILLED: it was stopped
        from outside.

        A child's time begins when it has its job, which may be late on a busy machine. If it
        does not take it, the socket may still hold a part, which the next child would read as its
        own: so this zygote ends, and the trainer sends the job to another. A child also has a
        limit of processor time, and its timed parts have one of their own.
        """
        if child.wait_for_message(job.microseconds * 1000) != _HAS_JOB:
            child.end()  # one that was stopped early would outlive this process
            os._exit(1)
        now, spent = monotonic_ns(), child.processor_time()
        end = now + job.microseconds * 1000
        while True:
            limit = end
            if self.cpu:
                limit = min(limit, now + self.cpu - (child.processor_time() - spent))
            if self.part:
                limit = min(limit, now + self._part_left(child))
            if now >= limit:
                return wire.END_KILLED if child.was_stopped() else wire.END_TIMEOUT
            if child.wait_for_message(limit - now) is not None:
                return wire.END_DONE
            now = monotonic_ns()

    def _part_left(self, child: ForkedChild) -> int:
        """Nanoseconds left for the current part; a whole part's time if none is timed."""
        began = child.region.part()
        return self.part - max(child.processor_time() - began, 0) if began >= 0 else self.part

    def _fork(self) -> ForkedChild:
        region = Region(self.region_bytes)
        start_read, start_write = os.pipe()
        done_read, done_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(start_read, 0)
            os.dup2(done_write, 1)
            self._live(region)
        region.hide()
        os.close(start_read)
        os.close(done_write)
        return ForkedChild(pid, region, start_write, done_read, self.sock.fileno())

    def _live(self, region: Region) -> None:
        """The child's life; it never returns. Before `run` only our code runs."""
        code = 1
        try:
            layers.die_with(self.pid)
            self.pid = 0
            self._take(region)
            code = 0
        except MemoryError:
            region.put(wire.MEMORY)
            code = 0
        finally:
            os._exit(code)

    def _take(self, region: Region) -> None:
        if not os.read(0, 1):
            os._exit(1)
        job = JobHeader(*wire.JOB.unpack(_receive(self.sock, wire.JOB.size)))
        body = _receive(self.sock, job.length)
        os.write(1, _HAS_JOB)
        os.close(0)
        os.closerange(2, _DESCRIPTORS)
        layers.limit_child(job.microseconds // 1_000_000 + 2)
        self.stop_clocks()
        self.seccomp()
        self.runner.run(wire.unpack(body), region)


def _end(code: int, end: int) -> int:
    """The end of a child (END_*), from its exit code and the result of `_wait`."""
    if code >= 0:
        return wire.END_SIGNAL if code else wire.END_DONE
    if -code == signal.SIGKILL and end != wire.END_DONE:
        return end
    return wire.END_SIGNAL if -code in _FAULTS else wire.END_KILLED


def _receive(sock: socket.socket, length: int) -> bytes:
    message = bytearray(length)
    room = memoryview(message)
    while room:
        received = sock.recv_into(room)
        if not received:
            os._exit(0)
        room = room[received:]
    return bytes(message)
