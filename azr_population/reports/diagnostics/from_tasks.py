"""Diagnostics that need the tasks themselves: Halstead's volume and coverage of problem space."""

from __future__ import annotations

import numpy as np

from azr_population.reports.diagnostics.catalogue import DIAGNOSTICS
from azr_population.reports.diagnostics.coverage import placed
from azr_population.reports.diagnostics.from_metrics import PROPOSERS
from azr_population.reports.diagnostics.records import roles_of, steps_of
from azr_population.reports.diagnostics.statistics import Series
from azr_population.reports.diagnostics.task_table import TaskTable, task_table
from azr_population.runs.directory import RunDirectory

TASKS_PER_STEP = 12
"""Tasks of a step that count for `coverage_per_task`: fewer than the nano single agent, which
proposes 24 a step, ever has valid."""


@DIAGNOSTICS.register("halstead_volume", "mean Halstead volume of valid programs, bits")
def halstead(run: RunDirectory) -> dict[str, Series]:
    """Of each proposer; the unnamed one is the mean over all valid tasks of a step."""
    table = task_table(run)
    found: dict[str, Series] = {}
    for name, chosen in _proposers(run, table).items():
        known = chosen & ~np.isnan(table.halstead)
        steps, where = np.unique(table.steps[known], return_inverse=True)
        sums = np.bincount(where, weights=table.halstead[known], minlength=len(steps))
        counts = np.bincount(where, minlength=len(steps))
        found[name] = [
            (int(step), float(value)) for step, value in zip(steps, sums / counts, strict=True)
        ]
    return found


@DIAGNOSTICS.register("coverage", "cells of the CVT archive filled so far (paper, Fig 9)")
def coverage(run: RunDirectory) -> dict[str, Series]:
    """Grows with the number of tasks alone: a population proposes several times as many a step as
    a single agent, so compare `coverage_per_task` too."""
    table, cells = placed(run)
    return {
        name: _filled(_all_steps(run, table), table.steps[chosen], cells[chosen])
        for name, chosen in _proposers(run, table).items()
    }


@DIAGNOSTICS.register(
    "coverage_per_task",
    f"cells expected to be filled so far by {TASKS_PER_STEP} random valid tasks of every step",
)
def coverage_per_task(run: RunDirectory) -> dict[str, Series]:
    """Coverage at equal number of tasks: rarefaction (Hurlbert 1971, "The nonconcept of species
    diversity"), step by step, exact and not sampled.

    A cell is missed by k of a step's n tasks, c of them in it, with probability
    C(n - c, k) / C(n, k); by all steps so far with the product of these. A step with no more than k
    tasks counts with all of them.
    """
    table, cells = placed(run)
    return {
        name: _rarefied(_all_steps(run, table), table.steps[chosen], cells[chosen], TASKS_PER_STEP)
        for name, chosen in _proposers(run, table).items()
    }


@DIAGNOSTICS.register(
    "cells_per_step",
    f"different cells expected among {TASKS_PER_STEP} random valid tasks of one step",
)
def cells_per_step(run: RunDirectory) -> dict[str, Series]:
    """How diverse a step is, whatever came before it; left out for steps with fewer tasks."""
    table, cells = placed(run)
    found: dict[str, Series] = {}
    for name, chosen in _proposers(run, table).items():
        points: Series = []
        for step, counts in _per_step(table.steps[chosen], cells[chosen]):
            if sum(counts.values()) >= TASKS_PER_STEP:
                missed = _missed(np.array(list(counts.values())), TASKS_PER_STEP)
                points.append((step, float(np.sum(1.0 - missed))))
        if points:
            found[name] = points
    return found


def _all_steps(run: RunDirectory, table: TaskTable) -> list[int]:
    """The run's steps, those without a valid task too: what was covered stays so."""
    return sorted({step["step"] for step in steps_of(run)} | set(table.steps.tolist()))


def _filled(all_steps: list[int], steps: np.ndarray, cells: np.ndarray) -> Series:
    _, first = np.unique(cells, return_index=True)
    born = np.sort(steps[first])
    totals = np.searchsorted(born, all_steps, side="right")
    return [(step, float(total)) for step, total in zip(all_steps, totals, strict=True)]


def _rarefied(all_steps: list[int], steps: np.ndarray, cells: np.ndarray, k: int) -> Series:
    empty = np.ones(int(cells.max()) + 1 if len(cells) else 0)
    tasks = dict(_per_step(steps, cells))
    found: Series = []
    for step in all_steps:
        if counts := tasks.get(step):
            empty[np.array(list(counts))] *= _missed(np.array(list(counts.values())), k)
        found.append((step, float(np.sum(1.0 - empty))))
    return found


def _missed(counts: np.ndarray, k: int) -> np.ndarray:
    """For cells with `counts` tasks, the chance that k of all the tasks miss each; float[n]."""
    n = int(counts.sum())
    if n <= k:
        return np.zeros(len(counts))
    # C(n - c, k) / C(n, k), factor by factor.
    i = np.arange(k)
    factors = np.clip(n - counts[:, None] - i, 0, None) / (n - i)
    missed: np.ndarray = np.prod(factors, axis=1)
    return missed


def _per_step(steps: np.ndarray, cells: np.ndarray) -> list[tuple[int, dict[int, int]]]:
    """Per step, ascending: how many of its tasks are in each cell that has any."""
    found: dict[int, dict[int, int]] = {}
    for step, cell in zip(steps.tolist(), cells.tolist(), strict=True):
        counts = found.setdefault(step, {})
        counts[cell] = counts.get(cell, 0) + 1
    return sorted(found.items())


def _proposers(run: RunDirectory, table: TaskTable) -> dict[str, np.ndarray]:
    """Which tasks are whose, bool[n]: all (`""` and the proposers' role) and each member's."""
    names = np.array(table.teachers, dtype=np.str_)
    roles = {name: role for name, role in roles_of(run).items() if role in PROPOSERS}
    roles |= {name: name.rpartition("_")[0] for name in {*table.teachers} - {*roles}}
    everybody = np.ones(len(names), dtype=bool)
    own = {name: names == name for name in roles}
    return {**own, **dict.fromkeys(roles.values(), everybody), "": everybody}
