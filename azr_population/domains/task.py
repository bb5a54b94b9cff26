"""A task, whatever its domain: what it is about, what goes in, what comes out; and the tasks that
were valid so far."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from pydantic import TypeAdapter


@dataclass(frozen=True)
class ParsedProposal:
    """What a teacher wrote, parsed but not yet judged. The domain defines what the texts mean; in
    `code` they are a program and the argument lists that it is called with."""

    type: str
    """One of the domain's types."""
    program: str
    inputs: tuple[str, ...]
    message: str = ""
    imports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A proposal that the domain accepted, with its outputs, one for each input. Equal tasks are
    copies of each other."""

    type: str
    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    message: str = ""
    imports: tuple[str, ...] = ()


def texts_in(value: object) -> list[str]:
    """What a field of a record lists, as texts; nothing where it is not a list."""
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []


task_from_dict = TypeAdapter(Task).validate_python
"""A task from plain data with the fields of `Task`; raises pydantic's ValidationError, which is a
ValueError, for any other."""


class TaskBuffer:
    """Tasks that were valid so far: examples for proposals, what counts as new, and replay.

    At most `capacity` different ones. Each task ever added is among them with the same chance
    (reservoir sampling, Vitter 1985, algorithm R), so a long run still holds its first steps.
    """

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

    def remove(self, unwanted: Callable[[Task], bool]) -> None:
        """Takes these tasks out."""
        self._tasks = [task for task in self._tasks if not unwanted(task)]
        self._present = set(self._tasks)

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {"tasks": [asdict(task) for task in self._tasks], "added": self.added}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        self._tasks = [task_from_dict(fields) for fields in state["tasks"]]
        self._present = set(self._tasks)
        self.added = state["added"]
