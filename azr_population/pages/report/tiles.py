"""The figures at the top of a run's page."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from azr_population.domains.measure import Measure
from azr_population.runs.diagnostics.changes import Change
from azr_population.runs.diagnostics.takes import early, late
from azr_population.runs.records import Record

TILES = ("solve_rate", "exam_mean", "validity", "", "coverage")
"""Measures, as `diagnostics.changes` names them; the empty place is that of the size."""


def headline_tiles(
    charts: Sequence[Record],
    steps: int,
    changes: Mapping[str, Change] | None = None,
    size: Measure | None = None,
) -> list[dict[str, Any]]:
    """The figures at the top of the page: means over the first and the last tenth of `steps`.

    A quantity that only grows, or is measured rarely and precisely, has its first and last value
    instead. A tile has the `name`, `title`, `format`, `smooth` and `grows` of its chart, the `line`
    that it is about with its `colour` and `points`, and `first`, `last`, `low` and `high`: these
    bound the change, null where `changes` does not tell it. There is no tile for a line with fewer
    than two points, or with none in either tenth.
    """
    tiles = []
    for name in (one or (size.name if size else "") for one in TILES):
        chart = next((chart for chart in charts if chart["name"] == name), None)
        main = [line for line in chart["lines"] if line["main"]] if chart else []
        # The solve rate is that of the solvers.
        line = next((line for line in main if line["name"] == "student"), next(iter(main), None))
        if chart is None or line is None or len(line["points"]) < 2:
            continue
        points = line["points"]
        first, last = points[0][1], points[-1][1]
        if chart["smooth"]:
            first, last = early(points, steps), late(points, steps)
        tile = {
            **{key: line[key] for key in ("colour", "points")},
            **{key: chart[key] for key in ("name", "title", "format", "smooth", "grows")},
            **{"line": line["name"], "unit": size.unit if size and name == size.name else ""},
            **{"first": first, "last": last, "low": None, "high": None},
        }
        change = (changes or {}).get(name)
        if change and math.isfinite(change.difference.low):
            low, high = change.difference.low, change.difference.high
            tile |= {"first": change.first, "last": change.last, "low": low, "high": high}
        if math.isfinite(tile["first"]) and math.isfinite(tile["last"]):
            tiles.append(tile)
    return tiles
