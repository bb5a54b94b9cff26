"""Diagnostics read from the tasks: coverage of the problem space."""

import numpy as np

from azr_population.domains.measure import PROPOSERS, Measure
from azr_population.runs.diagnostics.catalogue import reads
from azr_population.runs.diagnostics.coverage import tasks_with_cells
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.diagnostics.task_table import TaskTable
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import roles_of, steps_of

TASKS_PER_STEP = 12
"""Tasks of a step that count for `coverage_per_task`. The nano single agent, which proposes 24 a
step, always has more valid ones."""


@reads("coverage")
def coverage(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """It grows with the number of tasks, and a population proposes several times as many a step as
    a single agent: compare `coverage_per_task` too."""
    table, cells = tasks_with_cells(run)
    return {
        name: _filled(_all_steps(run, table), table.steps[chosen], cells[chosen])
        for name, chosen in _proposers(run, table).items()
    }


@reads("coverage_per_task")
def coverage_per_task(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """Coverage at an equal number of tasks: rarefaction (Hurlbert 1971, "The nonconcept of species
    diversity"), step by step, computed exactly.

    Of a step's n tasks c lie in a cell, and k of the n miss it with probability
    C(n - c, k) / C(n, k); all steps so far miss it with the product of these. A step of k tasks or
    fewer counts with all of them.
    """
    table, cells = tasks_with_cells(run)
    return {
        name: _rarefied(_all_steps(run, table), table.steps[chosen], cells[chosen], TASKS_PER_STEP)
        for name, chosen in _proposers(run, table).items()
    }


@reads("cells_per_step")
def cells_per_step(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """How diverse a step is by itself; steps with fewer tasks are left out."""
    table, cells = tasks_with_cells(run)
    series: dict[str, Series] = {}
    for name, chosen in _proposers(run, table).items():
        points: Series = []
        for step, counts in _per_step(table.steps[chosen], cells[chosen]):
            if sum(counts.values()) >= TASKS_PER_STEP:
                missed = _missed(np.array(list(counts.values())), TASKS_PER_STEP)
                points.append((step, float(np.sum(1.0 - missed))))
        if points:
            series[name] = points
    return series


def _all_steps(run: RunDirectory, table: TaskTable) -> list[int]:
    """The run's steps, including those without a valid task: what was covered stays covered."""
    return sorted({step["step"] for step in steps_of(run)} | set(table.steps.tolist()))


def _filled(all_steps: list[int], steps: np.ndarray, cells: np.ndarray) -> Series:
    _, first = np.unique(cells, return_index=True)
    born = np.sort(steps[first])
    totals = np.searchsorted(born, all_steps, side="right")
    return [(step, float(total)) for step, total in zip(all_steps, totals, strict=True)]


def _rarefied(all_steps: list[int], steps: np.ndarray, cells: np.ndarray, k: int) -> Series:
    empty = np.ones(int(cells.max()) + 1 if len(cells) else 0)
    tasks = dict(_per_step(steps, cells))
    series: Series = []
    for step in all_steps:
        if counts := tasks.get(step):
            empty[np.array(list(counts))] *= _missed(np.array(list(counts.values())), k)
        series.append((step, float(np.sum(1.0 - empty))))
    return series


def _missed(counts: np.ndarray, k: int) -> np.ndarray:
    """For each cell with `counts` tasks, the chance that k tasks miss it; float[n]."""
    n = int(counts.sum())
    if n <= k:
        return np.zeros(len(counts))
    # C(n - c, k) / C(n, k), factor by factor.
    i = np.arange(k)
    factors = np.clip(n - counts[:, None] - i, 0, None) / (n - i)
    missed: np.ndarray = np.prod(factors, axis=1)
    return missed


def _per_step(steps: np.ndarray, cells: np.ndarray) -> list[tuple[int, dict[int, int]]]:
    """By step, ascending: the number of tasks in each cell that has any."""
    tasks: dict[int, dict[int, int]] = {}
    for step, cell in zip(steps.tolist(), cells.tolist(), strict=True):
        counts = tasks.setdefault(step, {})
        counts[cell] = counts.get(cell, 0) + 1
    return sorted(tasks.items())


def _proposers(run: RunDirectory, table: TaskTable) -> dict[str, np.ndarray]:
    """The tasks of each proposer, bool[n]; those of `""` and of the role are all tasks."""
    names = np.array(table.teachers, dtype=np.str_)
    roles = {name: role for name, role in roles_of(run).items() if role in PROPOSERS}
    roles |= {name: name.rpartition("_")[0] for name in {*table.teachers} - {*roles}}
    everybody = np.ones(len(names), dtype=bool)
    members = {name: names == name for name in roles}
    return {**members, **dict.fromkeys(roles.values(), everybody), "": everybody}
