"""The map of the problem space: the archive's cells by two descriptors, a panel per kind."""

from typing import Any

from azr_population.errors import UserError
from azr_population.pages.web.templates import cut
from azr_population.runs import diagnostics
from azr_population.runs.diagnostics.coverage import space_of
from azr_population.runs.directory import RunDirectory


def coverage(run: RunDirectory) -> dict[str, Any]:
    """`{"panels", "axes", "labels", "names", "tasks", "cells", "missing"}`: why there is no map.

    What a panel is and its axes say the domain's space; x and y are scaled to [0, 1]. A cell is
    `[x, y, first step or null, member, tasks, panel, meaning, program]`.
    """
    nothing: dict[str, Any] = {"tasks": 0, "cells": []}
    try:
        space, archive = space_of(run), diagnostics.coverage_map(run)
    except UserError as error:
        return {**nothing, "missing": str(error)}
    bounds = {one.name: (one.low, one.high) for one in space.descriptors}

    def scaled(centroid: dict[str, float], name: str) -> float:
        low, high = bounds[name]
        return round((centroid[name] - low) / (high - low), 4)

    def panel(centroid: dict[str, float]) -> int:
        return max(range(len(space.panels)), key=lambda at: centroid[space.panels[at]])

    return {
        "panels": list(space.panels),
        "axes": {"x": list(space.ends)},
        "labels": list(space.labels),
        "names": list(space.axes),
        "missing": "",
        "tasks": archive.tasks,
        "cells": [
            [
                *(scaled(cell.centroid, name) for name in space.axes),
                cell.first_step,
                cell.member,
                cell.count,
                panel(cell.centroid),
                cell.meaning if cell.count else "",
                cut(cell.program)[:400],
            ]
            for cell in archive.cells
        ],
    }
