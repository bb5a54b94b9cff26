"""The lines of a run's charts: thinned, and broken where the individual in a slot changes."""

import bisect
import itertools
import math
from collections.abc import Sequence
from typing import Any

from azr_population.runs.records import Record, number, section

Points = list[tuple[float, float]]

MAX_POINTS = 400
"""Points per line. A longer run is drawn by means over equal spans of steps."""


def line_of(
    name: str,
    colour: str,
    main: bool,
    points: Points,
    grows: bool = False,
    births: Sequence[float] = (),
    dash: str = "",
) -> dict[str, Any]:
    """A line of about MAX_POINTS points at most: means of spans, or last values if it only grows.

    A new piece begins after each step of `births`, so that nothing leads from one individual to the
    next. `starts` are the places in `points` at which the pieces but the first begin; a line in one
    piece has none.
    """
    stride = math.ceil(len(points) / MAX_POINTS) or 1
    thinned: Points = []
    starts: list[int] = []
    for piece in _pieces(points, births):
        if thinned:
            starts.append(len(thinned))
        for i in range(0, len(piece), stride):
            bucket = piece[i : i + stride]
            thinned.append(_mean(bucket[-1:] if grows else bucket))
    drawn: dict[str, Any] = {"name": name, "colour": colour, "main": main, "points": thinned}
    return {**drawn, **({"starts": starts} if starts else {}), **({"dash": dash} if dash else {})}


def values(metrics: Sequence[Record], group: str, name: str, key: str) -> Points:
    """What a group of the metrics (`roles`, `members`, `types`) says of `name`, by step."""
    return [
        (step["step"], y)
        for step in metrics
        if (y := number(section(step, group).get(name, {}).get(key))) is not None
    ]


def _pieces(points: Points, births: Sequence[float]) -> list[Points]:
    edges = [bisect.bisect_right(points, (birth, math.inf)) for birth in births]
    pieces = [points[a:b] for a, b in itertools.pairwise([0, *edges, len(points)])]
    return [piece for piece in pieces if piece]


def _mean(bucket: Points) -> tuple[float, float]:
    x, y = (math.fsum(part) / len(bucket) for part in zip(*bucket, strict=True))
    return round(x, 1), float(f"{y:.5g}")
