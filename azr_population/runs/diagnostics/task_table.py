"""The valid tasks of a run as arrays, by one pass over `tasks.jsonl`."""

from dataclasses import dataclass

import numpy as np

from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import domain_of, remembered, step_of


@dataclass(frozen=True)
class TaskTable:
    """`n` tasks in the order of steps, without those that have no place in the domain's space.

    `steps` int64[n]; `teachers` names[n]; `points` float32[n, d], the descriptor values; `lines`
    int64[n], the index of the task's line among those of the file that parse.
    """

    steps: np.ndarray
    teachers: list[str]
    points: np.ndarray
    lines: np.ndarray


def task_table(run: RunDirectory) -> TaskTable:
    """The tasks of a run; empty without any, and for a domain without a space."""
    return remembered(run, "tasks", lambda: _read(run))


def _read(run: RunDirectory) -> TaskTable:
    space = domain_of(run).space
    rows: list[tuple[int, str, int]] = []
    points: list[tuple[float, ...]] = []
    for line, task in enumerate(run.tasks() if space else ()):
        step = step_of(task)
        point = space.point(task) if space and step is not None else None
        if step is not None and point is not None:
            rows.append((step, str(task.get("teacher", "")), line))
            points.append(point)
    order = np.argsort(np.array([row[0] for row in rows], dtype=np.int64), kind="stable")
    width = len(space.descriptors) if space else 0
    return TaskTable(
        steps=np.array([rows[i][0] for i in order], dtype=np.int64),
        teachers=[rows[i][1] for i in order],
        points=np.array(points, dtype=np.float32).reshape(len(rows), width)[order],
        lines=np.array([rows[i][2] for i in order], dtype=np.int64),
    )
