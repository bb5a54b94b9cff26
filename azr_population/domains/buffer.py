"""The tasks that were found valid so far: references for proposals, and what counts as new."""

from collections import OrderedDict
from dataclasses import asdict
from typing import Any

import numpy as np

from azr_population.domains.task import Task, task_from_dict


class TaskBuffer:
    """A bounded set of tasks, oldest out first. Equal tasks are kept once."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._tasks: OrderedDict[Task, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, task: Task) -> bool:
        return task in self._tasks

    def add(self, task: Task) -> None:
        """Puts a task in, as the newest."""
        self._tasks[task] = None
        self._tasks.move_to_end(task)
        if len(self._tasks) > self._capacity:
            self._tasks.popitem(last=False)

    def sample(self, type: str, count: int, generator: np.random.Generator) -> list[Task]:
        """Up to `count` different tasks of one type, uniformly."""
        if count == 0:
            return []
        pool = [task for task in self._tasks if task.type == type]
        chosen = generator.choice(len(pool), size=min(count, len(pool)), replace=False)
        return [pool[int(index)] for index in chosen]

    def to_list(self) -> list[dict[str, Any]]:
        """Plain data for a checkpoint, oldest first."""
        return [asdict(task) for task in self._tasks]

    def load_list(self, rows: list[dict[str, Any]]) -> None:
        """The inverse of `to_list`."""
        self._tasks.clear()
        for row in rows:
            self.add(task_from_dict(row))
