"""The map of the problem space: the archive's cells by size and branching, a panel per output."""

from collections.abc import Mapping
from typing import Any

from azr_population.domains.code.descriptors import DESCRIPTORS, KINDS
from azr_population.errors import UserError
from azr_population.pages.web.templates import cut
from azr_population.runs import diagnostics
from azr_population.runs.directory import RunDirectory

_BOUNDS = {descriptor.name: (descriptor.low, descriptor.high) for descriptor in DESCRIPTORS}
_X, _Y = "size", "branching"


def coverage(run: RunDirectory) -> dict[str, Any]:
    """`{"panels", "axes", "tasks", "cells", "missing"}`: why there is no map.

    A panel is a kind of output; within it x is the size of the programs and y their branching, both
    scaled to [0, 1]. (The archive's first two principal components only tell the kinds apart.) A
    cell is `[x, y, first step or null, member, tasks, panel, meaning, program]`.
    """
    low, high = (f"{2**bound:.0f}" for bound in _BOUNDS[_X])
    shown: dict[str, Any] = {
        "panels": list(KINDS),
        "axes": {"x": [low, high]},
        "tasks": 0,
        "cells": [],
        "missing": "",
    }
    try:
        archive = diagnostics.coverage_map(run)
    except UserError as error:
        return {**shown, "missing": str(error)}
    shown["tasks"] = archive.tasks
    shown["cells"] = [
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
        for cell in archive.cells
    ]
    return shown


def _panel(centroid: Mapping[str, float]) -> int:
    return max(range(len(KINDS)), key=lambda kind: centroid[f"gives {KINDS[kind]}"])


def _scaled(centroid: Mapping[str, float], name: str) -> float:
    low, high = _BOUNDS[name]
    return round((centroid[name] - low) / (high - low), 4)
