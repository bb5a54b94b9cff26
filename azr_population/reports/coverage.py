"""The map of the problem space: the archive's cells in two of their descriptors, by output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from azr_population.errors import UserError
from azr_population.reports import diagnostics
from azr_population.reports.diagnostics.descriptors import DESCRIPTORS, KINDS
from azr_population.reports.sections import cut
from azr_population.runs.directory import RunDirectory

_BOUNDS = {descriptor.name: (descriptor.low, descriptor.high) for descriptor in DESCRIPTORS}
_X, _Y = "size", "branching"


def coverage(run: RunDirectory) -> dict[str, Any]:
    """`{"panels", "axes", "tasks", "cells", "missing"}`.

    A panel is a kind of output: the archive's first two principal components only tell those apart,
    so within a panel x is the programs' size and y their branching, both scaled to [0, 1]. A cell
    is `[x, y, first step or null, member, tasks, panel, meaning, program]`. `missing` says why
    there is no map.
    """
    low, high = (f"{2**bound:.0f}" for bound in _BOUNDS[_X])
    found: dict[str, Any] = {
        "panels": list(KINDS),
        "axes": {"x": [low, high]},
        "tasks": 0,
        "cells": [],
        "missing": "",
    }
    try:
        map = diagnostics.coverage_map(run)
    except UserError as error:
        return {**found, "missing": str(error)}
    found["tasks"] = map.tasks
    found["cells"] = [
        [
            _scaled(cell.centroid, _X),
            _scaled(cell.centroid, _Y),
            cell.first_step,
            cell.member,
            cell.count,
            _panel(cell.centroid),
            cell.meaning if cell.count else "",
            cut(cell.program)[:400],
        ]
        for cell in map.cells
    ]
    return found


def _panel(centroid: Mapping[str, float]) -> int:
    return max(range(len(KINDS)), key=lambda kind: centroid[f"gives {KINDS[kind]}"])


def _scaled(centroid: Mapping[str, float], name: str) -> float:
    low, high = _BOUNDS[name]
    return round((centroid[name] - low) / (high - low), 4)
