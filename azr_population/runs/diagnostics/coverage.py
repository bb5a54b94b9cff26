"""Which kinds of problems a run has proposed: cells of a CVT archive (paper, Fig 9).

Source: Vassiliades, Chatzilygeroudis, Mouret, "Using centroidal Voronoi tessellations to scale up
MAP-Elites" (2018). `descriptors.py` turns a task into a point. The cells belong to
the centroids in `centroids.npy`, the same for every run, which `python -m
azr_population.runs.diagnostics.centroids` makes from a seed. A cell's first task fills it for good.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from azr_population.domains.code.descriptors import (
    DESCRIPTORS,
    KINDS,
    OPERATIONS,
    scale,
    unscale,
)
from azr_population.errors import UserError
from azr_population.runs.diagnostics.task_table import TaskTable, task_table
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import domain_of, remembered

CENTROIDS = Path(__file__).with_name("centroids.npy")


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


@lru_cache(maxsize=1)
def centroids() -> np.ndarray:
    """The fixed centroids in the archive's coordinates, float64[cells, d]."""
    return np.asarray(np.load(CENTROIDS), dtype=np.float64)


def tasks_with_cells(run: RunDirectory) -> tuple[TaskTable, np.ndarray]:
    """The run's tasks and the cell of each, int[n].

    They are read together, since a run that goes on may have more tasks at the next read.
    """

    def place() -> tuple[TaskTable, np.ndarray]:
        table = task_table(run)
        return table, _place(table.points)

    return remembered(run, "cells", place)


def coverage_map(run: RunDirectory) -> CoverageMap:
    """Every cell: its centroid, and when and by whom it was filled.

    Raises:
        UserError: the run's domain has no descriptors.
    """
    if not domain_of(run).descriptors:
        raise UserError("this task.domain has no descriptors, in which coverage is counted")
    table, cells = tasks_with_cells(run)
    counts = np.bincount(cells, minlength=len(centroids()))
    filled, first = np.unique(cells, return_index=True)
    programs = _programs(run, {int(table.lines[i]) for i in first})
    begun = dict(zip(filled.tolist(), first.tolist(), strict=True))
    values = unscale(centroids())
    kinds = []
    for index, centroid in enumerate(values):
        task = begun.get(index)
        kinds.append(
            Cell(
                index=index,
                centroid={d.name: float(v) for d, v in zip(DESCRIPTORS, centroid, strict=True)},
                meaning=describe(centroid),
                first_step=None if task is None else int(table.steps[task]),
                member="" if task is None else table.teachers[task],
                count=int(counts[index]),
                program="" if task is None else programs.get(int(table.lines[task]), ""),
            )
        )
    return CoverageMap(kinds, len(table.teachers))


def describe(centroid: np.ndarray) -> str:
    """A cell in words, from the descriptor values of its centroid."""
    value = {d.name: float(v) for d, v in zip(DESCRIPTORS, centroid, strict=True)}
    groups = sorted(OPERATIONS.values(), key=lambda group: -value[group])
    mix = " and ".join(group for group in dict.fromkeys(groups) if value[group] > 0.25)
    takes, gives = (
        " and ".join(kind for kind in KINDS if value[f"{verb} {kind}"] > 0.25)
        for verb in ("takes", "gives")
    )
    return (
        f"{takes or 'nothing'} to {gives or 'nothing'}, "
        f"{value['arguments']:.0f} argument{'s' * (round(value['arguments']) != 1)}; about "
        f"{2 ** value['size']:.0f} AST nodes, {value['depth']:.0f} deep, cyclomatic "
        f"{2 ** value['branching']:.0f}; {mix or 'a mix of everything'}"
    )


def _programs(run: RunDirectory, lines: set[int]) -> dict[int, str]:
    """The programs in these lines of `tasks.jsonl`."""
    return {
        line: str(task.get("program", "")) for line, task in enumerate(run.tasks()) if line in lines
    }


def _place(points: np.ndarray) -> np.ndarray:
    """The nearest centroid of each, int64[n]."""
    from scipy.spatial import KDTree  # late: the terminal's lines need none of this

    if not len(points):
        return np.zeros(0, dtype=np.int64)
    _, nearest = KDTree(centroids()).query(scale(points).astype(np.float64))
    return np.asarray(nearest, dtype=np.int64)
