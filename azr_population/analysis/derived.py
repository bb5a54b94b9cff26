"""What a run's tasks, lineage and cross-play say, under names as in `metrics.jsonl`.

Coverage counts the cells of the domain's problem space that tasks fell into (paper, Fig 9). It
grows with the number of tasks, so there is also coverage at an equal number of tasks: rarefaction
(Hurlbert 1971, "The nonconcept of species diversity"), step by step, computed exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from azr_population.domains.metric import PROPOSERS
from azr_population.errors import UserError
from azr_population.files import read_json
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import (
    domain_of,
    last_step,
    lines_of,
    mean,
    number,
    remembered,
    role_of,
    roles_of,
)

TASKS_PER_STEP = 12
"""Tasks of a step that count for `coverage_per_task`. The nano single agent, which proposes 24 a
step, always has more valid ones."""
CROSSPLAY = "crossplay.json"
"""Where a run's own cross-play is in it."""


def derived(run: RunDirectory) -> dict[int, dict[str, float]]:
    """{step: {key: value}} of a whole run; empty for committed results, whose lines have it."""
    values: dict[int, dict[str, float]] = {}
    if run.results_only:
        return values
    steps = [line["step"] for line in lines_of(run)]
    tasks = placed_tasks(run)
    if domain_of(run).space:
        curves = coverage(tasks, steps)
        for role in {*roles_of(run).values(), *map(role_of, tasks["teacher"])} & {*PROPOSERS}:
            for name, line in curves.items():
                for step, value in line.dropna().items():
                    values.setdefault(step, {})[f"{role}/{name}"] = float(value)
    for step, key, value in _descent(run, steps):
        values.setdefault(step, {})[key] = value
    for key, value in _slopes(run):
        values.setdefault(last_step(run), {})[key] = value
    return values


def placed_tasks(run: RunDirectory) -> pd.DataFrame:
    """The valid tasks that have a place in the problem space, by step: `step`, `teacher`,
    `program`, `cell`."""
    return remembered(run, "cells", lambda: _place(run))


def _place(run: RunDirectory) -> pd.DataFrame:
    space = domain_of(run).space
    rows, points = [], []
    for task in run.tasks() if space else ():
        point = space.point(task) if space else None
        if point is not None:
            rows.append((task["step"], str(task.get("teacher", "")), str(task.get("program", ""))))
            points.append(point)
    frame = pd.DataFrame(rows, columns=["step", "teacher", "program"])
    if space and points:
        frame["cell"] = space.place(np.array(points, dtype=np.float32))
    else:
        frame["cell"] = pd.Series(dtype=int)
    return frame.sort_values("step", kind="stable", ignore_index=True)


def coverage(tasks: pd.DataFrame, steps: list[int]) -> pd.DataFrame:
    """`coverage` and `coverage_per_task` (so far) and `cells_per_step` (missing where a step has
    fewer than `TASKS_PER_STEP` tasks) by step.

    Of a step's n tasks c are in a cell, and k of the n miss it with probability
    C(n - c, k) / C(n, k); all steps so far miss it with the product of these. A step of k tasks or
    fewer counts with all of them.
    """
    counts = pd.crosstab(tasks["step"], tasks["cell"])
    missed = missed_cells(counts.to_numpy(), TASKS_PER_STEP)
    enough = counts.sum(axis=1).to_numpy() >= TASKS_PER_STEP
    curves = pd.DataFrame(
        {
            "coverage": (counts.cumsum() > 0).sum(axis=1),
            "coverage_per_task": (1.0 - missed.cumprod(axis=0)).sum(axis=1),
            "cells_per_step": np.where(enough, (1.0 - missed).sum(axis=1), np.nan),
        },
        index=counts.index,
    )
    curves = curves.reindex(sorted({*steps, *counts.index}))
    # What was covered stays covered in a step without a valid task.
    so_far = curves[["coverage", "coverage_per_task"]].ffill().fillna(0.0)
    return curves.assign(**so_far)


def missed_cells(counts: np.ndarray, k: int) -> np.ndarray:
    """The chance that k of a step's tasks miss a cell; `counts` int [steps, cells] -> float."""
    n = counts.sum(axis=1, keepdims=True)
    missed = np.ones(counts.shape)
    for i in range(k):  # C(n - c, k) / C(n, k), factor by factor
        missed *= np.clip(n - counts - i, 0, None) / np.maximum(n - i, 1)
    return np.where(n <= k, counts == 0, missed)


def _descent(run: RunDirectory, steps: list[int]) -> list[tuple[int, str, float]]:
    """After each step, of every role with two members or more: births since the founders
    (`descent_depth`), pairs with a common ancestor (`related_pairs`), steps since their lines
    parted (`ancestor_age`), founders with descendants (`founders`)."""
    roles = roles_of(run)
    births = _births(run, roles)
    values_at: list[tuple[int, str, float]] = []
    for role in dict.fromkeys(roles.values()):
        names = [name for name in roles if roles[name] == role]
        if len(names) < 2:
            continue
        pairs = list(combinations(names, 2))
        depth = dict.fromkeys(names, 0)
        founders = {name: {name} for name in names}
        parted: dict[frozenset[str], int] = {}
        for step in steps:
            born = {c: p for c, p in births.get(step, {}).items() if roles[c] == role}

            def last_common(first: str, other: str) -> int | None:
                origins = [born.get(name, {name}) for name in (first, other)]  # noqa: B023
                if origins[0] & origins[1]:
                    return step  # noqa: B023
                times = (parted.get(frozenset((a, b))) for a in origins[0] for b in origins[1])  # noqa: B023
                return max((time for time in times if time is not None), default=None)

            times = {frozenset(pair): last_common(*pair) for pair in pairs}
            depth |= {c: 1 + max(depth[p] for p in parents) for c, parents in born.items()}
            founders |= {
                c: set().union(*(founders[p] for p in parents)) for c, parents in born.items()
            }
            parted = {pair: time for pair, time in times.items() if time is not None}
            values = {
                "descent_depth": mean(depth.values()),
                "related_pairs": len(parted) / len(pairs),
                "ancestor_age": mean(float(step - time) for time in parted.values()),
                "founders": len(set().union(*founders.values())) / len(names),
            }
            values_at += [(step, f"{role}/{k}", v) for k, v in values.items() if v is not None]
    return values_at


def _births(run: RunDirectory, roles: Mapping[str, str]) -> dict[int, dict[str, set[str]]]:
    """By step: each child's parents. Parents of another role are left out."""
    births: dict[int, dict[str, set[str]]] = {}
    for row in run.lineage():
        child, named = row.get("child") or "", map(str, row.get("parents") or ())
        parents = {name for name in named if roles.get(name) == roles.get(child)}
        if child in roles and parents:
            births.setdefault(row["step"], {})[child] = parents
    return births


def _slopes(run: RunDirectory) -> list[tuple[str, float]]:
    """Change per 100 steps against the earliest of the other side, where the run was played
    against itself."""
    path = run.path / CROSSPLAY
    try:
        content = read_json(path) if path.is_file() else {}
    except UserError:
        return []
    slopes = content.get("slopes") if isinstance(content, dict) else None
    by_role = slopes if isinstance(slopes, dict) else {}
    return [
        (f"{role}/cross_play_slope", value)
        for role in ("student", "teacher")
        if (value := number(by_role.get(role))) is not None
    ]
