"""A task, whatever its domain: what it is about, what goes in, what comes out; and the tasks that
were valid so far."""

import hashlib
import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from pydantic import TypeAdapter


@dataclass(frozen=True)
class ParsedProposal:
    """A teacher's proposal, parsed but not yet judged. The domain defines what the texts mean; in
    `code` they are a program and the argument lists that it is called with."""

    type: str
    """The type of task, one of the domain's."""
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
    """The items of a record's field that is a list, as texts; nothing where it is not a list."""
    return [str(item) for item in value] if isinstance(value, (list, tuple)) else []


task_from_dict = TypeAdapter(Task).validate_python
"""A task from plain data with the fields of `Task`; raises pydantic's ValidationError, which is a
ValueError, for any other."""


class TaskBuffer:
    """Tasks that were valid so far: examples for proposals, what counts as new, and replay.

    At most `capacity` different ones. Each task ever added is among them with the same chance,
    however often it was added: a hash gives it a fixed position in a random order, and the first
    ones stay (bottom-k sampling, Cohen and Kaplan 2007). So a long run still holds its first steps.
    """

    def __init__(self, capacity: int = 4096, seed: int = 0) -> None:
        self._capacity = capacity
        self._seed = seed
        self._tasks: dict[int, Task] = {}
        """By their positions in the random order."""
        self._last: list[int] = []
        """A heap of the positions, negative."""

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, task: object) -> bool:
        return isinstance(task, Task) and self._position(task) in self._tasks

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks.values())

    def add(self, task: Task) -> None:
        """Puts a task in; if the buffer is full, the last one in the random order leaves."""
        position = self._position(task)
        if position in self._tasks:
            return
        self._tasks[position] = task
        heapq.heappush(self._last, -position)
        if len(self._tasks) > self._capacity:
            del self._tasks[-heapq.heappop(self._last)]

    def _position(self, task: Task) -> int:
        text = json.dumps([self._seed, *vars(task).values()])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")

    def sample(
        self, count: int, generator: np.random.Generator, type: str | None = None
    ) -> list[Task]:
        """Up to `count` different tasks, uniformly; of one type, where one is given."""
        if count == 0:
            return []
        pool = [task for task in self if type is None or task.type == type]
        chosen = generator.choice(len(pool), size=min(count, len(pool)), replace=False)
        return [pool[int(index)] for index in chosen]

    def state(self) -> list[dict[str, Any]]:
        """Plain data for a checkpoint."""
        return [asdict(task) for task in self]

    def load_state(self, state: Sequence[Mapping[str, Any]]) -> None:
        """The inverse of `state`. Raises ValueError: a task is not one, is there twice, or the
        buffer does not hold so many."""
        tasks = [task_from_dict(fields) for fields in state]
        self._tasks, self._last = {}, []
        for task in tasks:
            self.add(task)
        if len(self) != len(state):
            raise ValueError(f"{len(state)} tasks in a buffer, {len(self)} of which it can hold")
