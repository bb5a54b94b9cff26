"""Waiting for a child, and ending it."""

import os
import select
import signal
from time import clock_gettime_ns, monotonic_ns

_CPUCLOCK_SCHED = 2  # of the kernel's clock numbers: the processor time of a whole process


class Watch:
    """Waits for a child's end, or for its word that it is done, and kills it.

    By pidfd, or by number where there is none. Where the trainer has gone meanwhile, all ends here.
    """

    def __init__(self, pid: int, trainer: int, has_pidfd: bool, done: int = -1) -> None:
        """`trainer` is the descriptor of a socket, `done` that of a pipe the child may write to."""
        self.pid = pid
        self.done = done
        self.pidfd = os.pidfd_open(pid) if has_pidfd else -1
        self.status: int | None = None
        self.trainer = trainer
        self.poller = select.poll()
        self.poller.register(trainer, select.POLLRDHUP)
        for descriptor in (self.pidfd, done):
            if descriptor >= 0:
                self.poller.register(descriptor, select.POLLIN)

    def within(self, nanoseconds: int) -> bool:
        """Whether the child ends, or is done, within that time."""
        until = monotonic_ns() + nanoseconds
        milliseconds = max(nanoseconds // 1_000_000 + 1, 0) if self.pidfd >= 0 else 1
        while True:
            ready = [number for number, _ in self.poller.poll(milliseconds)]
            if self.pidfd in ready or self.done in ready:
                return True
            if ready:
                os._exit(0)
            if self.pidfd >= 0:
                return False
            # Without a pidfd nothing wakes us when the child ends: look every millisecond.
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
                return True
            if monotonic_ns() >= until:
                return False

    def processor_time(self) -> int:
        """Nanoseconds that the child has computed, from outside of it; 0 where no clock says so."""
        try:
            return clock_gettime_ns(~self.pid << 3 | _CPUCLOCK_SCHED)
        except OSError:
            return 0

    def was_stopped(self) -> bool:
        """Whether somebody has stopped the child, going on again or not."""
        try:
            how = os.WSTOPPED | os.WCONTINUED | os.WNOHANG
            return os.waitid(os.P_PID, self.pid, how) is not None
        except ChildProcessError:
            return False

    def forget(self) -> None:
        """For another child, which is not to see numbers that chance has given."""
        self.pid = self.pidfd = 0

    def kill(self) -> None:
        """End the child at once. It is not reaped yet, so its number is still its own."""
        if self.pidfd >= 0:
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        elif self.status is None:
            os.kill(self.pid, signal.SIGKILL)

    def reap(self) -> int:
        """The exit code, negative for a signal; waits for the end."""
        status = self.status if self.status is not None else os.waitpid(self.pid, 0)[1]
        if self.pidfd >= 0:
            os.close(self.pidfd)
        return os.waitstatus_to_exitcode(status)
