"""Tasks that wait for a worker, and what goes to it next."""

import bisect

from .jobs import Job, PendingWork
from .sandbox import wire
from .settings import RefereeSettings

_CALLS = 256  # in one job, at most


class Waiting:
    """Those that came first are in front."""

    def __init__(self, settings: RefereeSettings, workers: int) -> None:
        self._settings = settings
        self._workers = workers
        self._tasks: list[PendingWork] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, task: PendingWork) -> None:
        """Let a task wait as long as it has calls to be made."""
        task.alone |= task.work.alone or self._settings.child_per_call or task.tries > 1
        at = bisect.bisect_left(self._tasks, task.number, key=lambda task: task.number)
        if self._tasks[at : at + 1] == [task]:
            del self._tasks[at]
        if task.waits:
            self._tasks.insert(at, task)

    def next(self, worker: object) -> Job | None:
        """The next job for a worker; several tasks that may share a child go together, but no more
        than leave something for the other workers."""
        most = min(self._settings.share, -(-len(self._tasks) // self._workers))
        parts: list[tuple[PendingWork, list[int]]] = []
        count = size = 0
        for task in self._tasks:
            calls = task.next_calls(worker)
            if not calls:
                continue
            if task.alone or self._apart(task):
                if not parts:
                    parts.append((task, calls))
                    break
                continue
            count, size = count + len(calls), size + task.size
            if parts and (count > _CALLS or size > wire.INBOX_BYTES):
                break
            parts.append((task, calls))
            if len(parts) >= most:
                break
        if not parts:
            return None
        first = parts[0][0]
        job = Job(parts, worker, resident=not (first.alone or self._apart(first)))
        taken = {id(task) for task, _ in parts if not task.waits}
        self._tasks = [task for task in self._tasks if id(task) not in taken]
        return job

    def _apart(self, task: PendingWork) -> bool:
        return self._settings.share == 1 or task.work.apart or task.size > wire.INBOX_BYTES
