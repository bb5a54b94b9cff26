"""The valid tasks of a run as arrays, by one pass over `tasks.jsonl`."""

import math
from dataclasses import dataclass

import numpy as np

from azr_population.domains.code.complexity import halstead_volume, measure, parse
from azr_population.domains.code.descriptors import DESCRIPTORS, of_data, of_program
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import domain_of, remembered, step_of

_PROGRAM = 8
"""Descriptors that depend on the program alone."""


@dataclass(frozen=True)
class TaskTable:
    """`n` tasks in the order of steps, without those whose program cannot be parsed.

    `steps` int64[n]; `teachers` names[n]; `points` float32[n, d], the descriptor values;
    `halstead` float64[n], bits, NaN where unknown; `lines` int64[n], the index of the task's
    line among those of the file that parse.
    """

    steps: np.ndarray
    teachers: list[str]
    points: np.ndarray
    halstead: np.ndarray
    lines: np.ndarray


def task_table(run: RunDirectory) -> TaskTable:
    """The tasks of a run; empty without any."""
    return remembered(run, "tasks", lambda: _read(run))


def _read(run: RunDirectory) -> TaskTable:
    known: dict[str, tuple[tuple[float, ...], float] | None] = {}
    rows: list[tuple[int, str, int, float]] = []
    points: list[tuple[float, ...]] = []
    # A domain without descriptors has no programs that could be measured.
    for line, task in enumerate(run.tasks() if domain_of(run).descriptors else ()):
        step, program = step_of(task), task.get("program")
        if step is None or not isinstance(program, str):
            continue
        if program not in known:
            known[program] = _program(program)
        measured = known[program]
        if measured is None:
            continue
        rows.append((step, str(task.get("teacher", "")), line, measured[1]))
        points.append((*measured[0], *of_data(task)))
    order = np.argsort(np.array([row[0] for row in rows], dtype=np.int64), kind="stable")
    return TaskTable(
        steps=np.array([rows[i][0] for i in order], dtype=np.int64),
        teachers=[rows[i][1] for i in order],
        points=np.array(points, dtype=np.float32).reshape(-1, len(DESCRIPTORS))[order],
        halstead=np.array([rows[i][3] for i in order], dtype=np.float64),
        lines=np.array([rows[i][2] for i in order], dtype=np.int64),
    )


def _program(program: str) -> tuple[tuple[float, ...], float] | None:
    tree = parse(program)
    complexity = measure(program, tree) if tree else None
    if tree is None or complexity is None:
        return None
    volume = halstead_volume(tree)
    return of_program(tree, complexity), math.nan if volume is None else volume
