"""The tasks that were valid so far: examples for proposals, what counts as new, and replay."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from azr_population.domains.task import Task, task_from_dict


class TaskBuffer:
    """At most `capacity` different tasks. Each task ever added is among them with the same chance
    (reservoir sampling, Vitter 1985, algorithm R), so a long run still holds its first steps."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._tasks: list[Task] = []
        self._present: set[Task] = set()
        self.added = 0
        """Tasks that were ever added, those that have left included."""

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, task: object) -> bool:
        return task in self._present

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks)

    def add(self, task: Task, generator: np.random.Generator) -> None:
        """Puts a new task in. Where the buffer is full, `generator` draws which task leaves it,
        this one or an older one."""
        if task in self._present:
            return
        self.added += 1
        if len(self._tasks) < self._capacity:
            self._tasks.append(task)
        else:
            place = int(generator.integers(self.added))
            if place >= self._capacity:
                return
            self._present.remove(self._tasks[place])
            self._tasks[place] = task
        self._present.add(task)

    def sample(
        self, count: int, generator: np.random.Generator, type: str | None = None
    ) -> list[Task]:
        """Up to `count` different tasks, uniformly; of one type, where one is given."""
        if count == 0:
            return []
        pool = [task for task in self._tasks if type is None or task.type == type]
        chosen = generator.choice(len(pool), size=min(count, len(pool)), replace=False)
        return [pool[int(index)] for index in chosen]

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {"tasks": [asdict(task) for task in self._tasks], "added": self.added}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        self._tasks = [task_from_dict(fields) for fields in state["tasks"]]
        self._present = set(self._tasks)
        self.added = state["added"]
