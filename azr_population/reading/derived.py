"""Metrics that are computed from a run's tasks and cross-play.

Coverage counts the cells of the domain's problem space that tasks fell into (paper, Fig 9). It
grows with the number of tasks, so there is also coverage at an equal number of tasks: rarefaction
(Hurlbert 1971, "The nonconcept of species diversity"), step by step, computed exactly.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from azr_population.domains.domain import Domain
from azr_population.domains.metric import PROPOSERS
from azr_population.errors import UserError
from azr_population.files import read_json
from azr_population.runs.records import Record, finite_or_none, role_of

TASKS_PER_STEP = 12
"""Tasks of a step that count for `coverage_per_task`. The nano single agent, which proposes 32 a
step, always has more valid ones."""


def derived(
    path: Path, steps: list[int], roles: Iterable[str], tasks: pd.DataFrame | None
) -> dict[int, dict[str, float]]:
    """{step: {key: value}} of the run in the folder `path`. A cross-play whose file is damaged is
    left out, with a warning.

    Args:
        steps: the recorded ones, ascending.
        roles: of its members.
        tasks: its `placed_tasks`; None without a problem space.
    """
    values: dict[int, dict[str, float]] = {}
    if tasks is not None:
        curves = coverage(tasks, steps)
        for role in {*roles, *map(role_of, tasks["teacher"])} & {*PROPOSERS}:
            for name, line in curves.items():
                for step, value in line.items():
                    values.setdefault(step, {})[f"{role}/{name}"] = float(value)
    # Change per 100 steps against the earliest of the other side, where the run was played against
    # itself.
    path = path / "crossplay.json"
    try:
        slopes = dict(read_json(path)["slopes"]) if path.is_file() else {}
    except (UserError, KeyError, TypeError, ValueError):
        logging.getLogger(__name__).warning("%s is damaged; make it again with crossplay", path)
        slopes = {}
    for role in ("student", "teacher"):
        if (value := finite_or_none(slopes.get(role))) is not None:
            values.setdefault(steps[-1] if steps else 0, {})[f"{role}/cross_play_slope"] = value
    return values


def placed_tasks(domain: Domain, tasks: Iterable[Record]) -> pd.DataFrame:
    """The valid tasks with a place in the problem space: `step` (ascending), `teacher`, `cell`."""
    space = domain.space
    rows, points = [], []
    for task in tasks if space else ():
        point = space.point(task) if space else None
        if point is not None:
            rows.append((task["step"], str(task.get("teacher", ""))))
            points.append(point)
    frame = pd.DataFrame(rows, columns=["step", "teacher"])
    if space and points:
        frame["cell"] = space.place(np.array(points, dtype=np.float32))
    else:
        frame["cell"] = pd.Series(dtype=int)
    return frame.sort_values("step", kind="stable", ignore_index=True)


def coverage(tasks: pd.DataFrame, steps: list[int]) -> pd.DataFrame:
    """`coverage` and `coverage_per_task` so far, by step.

    Of a step's n tasks c are in a cell, and k of the n miss it with probability
    C(n - c, k) / C(n, k); all steps so far miss it with the product of these. A step of k tasks or
    fewer counts with all of them.
    """
    counts = pd.crosstab(tasks["step"], tasks["cell"])
    missed = missed_cells(counts.to_numpy(), TASKS_PER_STEP)
    curves = pd.DataFrame(
        {
            "coverage": (counts.cumsum() > 0).sum(axis=1),
            "coverage_per_task": (1.0 - missed.cumprod(axis=0)).sum(axis=1),
        },
        index=counts.index,
    )
    # What was covered stays covered in a step without a valid task.
    return curves.reindex(sorted({*steps, *counts.index})).ffill().fillna(0.0)


def missed_cells(counts: np.ndarray, k: int) -> np.ndarray:
    """The chance that k of a step's tasks miss a cell; `counts` int [steps, cells] -> float."""
    n = counts.sum(axis=1, keepdims=True)
    missed = np.ones(counts.shape)
    for i in range(k):  # C(n - c, k) / C(n, k), factor by factor
        missed *= np.clip(n - counts - i, 0, None) / np.maximum(n - i, 1)
    return np.where(n <= k, counts == 0, missed)
