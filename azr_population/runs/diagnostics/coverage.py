"""Which kinds of problems a run has proposed: cells of its domain's space (paper, Fig 9).

A cell's first task fills it for good.
"""

from dataclasses import dataclass, field

import numpy as np

from azr_population.domains.space import Space
from azr_population.errors import UserError
from azr_population.runs.diagnostics.task_table import TaskTable, task_table
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import domain_of, remembered


@dataclass(frozen=True)
class Cell:
    """A kind of problem.

    `centroid` maps descriptors to values, and `meaning` puts them into words. The rest is about the
    run: in which step the cell was first filled (None: never) and by which member, how many tasks
    fell into it, and the program of the first one.
    """

    index: int
    centroid: dict[str, float]
    meaning: str
    first_step: int | None = None
    member: str = ""
    count: int = 0
    program: str = ""


@dataclass(frozen=True)
class CoverageMap:
    """All cells of the archive, filled or not, and the number of tasks."""

    cells: list[Cell] = field(default_factory=list)
    tasks: int = 0

    @property
    def filled(self) -> list[Cell]:
        """The cells with a task, ordered by the step in which they were filled."""
        filled = (cell for cell in self.cells if cell.count)
        return sorted(filled, key=lambda cell: (cell.first_step or 0, cell.index))


def tasks_with_cells(run: RunDirectory) -> tuple[TaskTable, np.ndarray]:
    """The run's tasks and the cell of each, int[n].

    They are read together, since a run that goes on may have more tasks at the next read.
    """

    def place() -> tuple[TaskTable, np.ndarray]:
        table, space = task_table(run), domain_of(run).space
        return table, space.place(table.points) if space else np.zeros(0, dtype=np.int64)

    return remembered(run, "cells", place)


def coverage_map(run: RunDirectory) -> CoverageMap:
    """Every cell: its centroid, and when and by whom it was filled. Raises UserError: the run's
    domain has no space."""
    space = space_of(run)
    table, cells = tasks_with_cells(run)
    counts = np.bincount(cells, minlength=len(space.archive))
    filled, first = np.unique(cells, return_index=True)
    programs = _programs(run, {int(table.lines[i]) for i in first})
    begun = dict(zip(filled.tolist(), first.tolist(), strict=True))
    values = space.unscale(space.archive)
    kinds = []
    for index, centroid in enumerate(values):
        task = begun.get(index)
        names = (descriptor.name for descriptor in space.descriptors)
        value = dict(zip(names, map(float, centroid), strict=True))
        kinds.append(
            Cell(
                index=index,
                centroid=value,
                meaning=space.words(value),
                first_step=None if task is None else int(table.steps[task]),
                member="" if task is None else table.teachers[task],
                count=int(counts[index]),
                program="" if task is None else programs.get(int(table.lines[task]), ""),
            )
        )
    return CoverageMap(kinds, len(table.teachers))


def space_of(run: RunDirectory) -> Space:
    """The space of the run's problems. Raises UserError where its domain has none."""
    space = domain_of(run).space
    if space is None:
        raise UserError("this task.domain has no space of problems, in which coverage is counted")
    return space


def _programs(run: RunDirectory, lines: set[int]) -> dict[int, str]:
    """The programs in these lines of `tasks.jsonl`."""
    return {
        line: str(task.get("program", "")) for line, task in enumerate(run.tasks()) if line in lines
    }
