"""The curves laid over each other: a line with a band per arm, and a thin line per seed."""

import math
from collections.abc import Sequence
from typing import Any

from azr_population.domains.measure import Measure
from azr_population.pages.comparison.inputs import Arm, domains_of
from azr_population.runs.diagnostics import Series, band
from azr_population.runs.diagnostics.measures import measures_for

MAX_POINTS = 50
"""Points per line. Longer runs are drawn by means over spans of steps, the same for all arms. Exams
are rare and precise, and drawn as they are."""

SECTIONS = ("skill", "complexity", "space", "proposing", "training")
"""Whose measures are drawn."""

DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2")


def curves(arms: Sequence[Arm]) -> list[dict[str, Any]]:
    """The charts that have data, as `report.charts.line_charts` gives them.

    Points of a main line are `[step, mean, low, high]` (95%, Student's t over seeds) where the arm
    has several seeds, else `[step, value]`.
    """
    last = max((run.last for arm in arms for run in arm.runs), default=0)
    span = math.ceil(last / MAX_POINTS) or 1
    charts = []
    shown = measures_for(domains_of(arms))
    for measure in (one for one in shown if one.section in SECTIONS):
        lines: list[dict[str, Any]] = []
        width = 1 if measure.rare else span
        for i, arm in enumerate(arms):
            series = [run.series(measure.name) for run in arm.independent]
            seeds = [_spans(run_series, width, last) for run_series in series if run_series]
            look = {"colour": f"line-{i % 8}", "dash": DASHES[i % len(DASHES)]}
            points = _band(seeds, measure)
            if points:
                name = arm.name if len(arm.independent) < 2 else f"{arm.name} (n={len(seeds)})"
                lines.append({**look, "name": name, "main": True, "points": points})
            if len(seeds) > 1:
                lines += [
                    {
                        **look,
                        "name": f"{arm.name}, seed {j + 1}",
                        "main": False,
                        "points": _plain(s),
                    }
                    for j, s in enumerate(seeds)
                ]
        if lines:
            spans = f"; means of {width} steps" if width > 1 else ""
            charts.append(
                {
                    "section": measure.section,
                    "title": measure.title,
                    "format": measure.format,
                    "note": measure.about + spans,
                    "lines": lines,
                    **({"scale": "exam"} if measure.rare else {}),
                }
            )
    return charts


def _spans(series: Series, span: int, last: int) -> Series:
    """Means over spans of steps. A point lies at the middle of its span even if steps are missing,
    so that the points of all seeds coincide."""
    spans: dict[int, list[float]] = {}
    for step, value in series:
        spans.setdefault((step - 1) // span, []).append(value)
    return [
        (min(place * span + (span + 1) // 2, last), math.fsum(values) / len(values))
        for place, values in sorted(spans.items())
    ]


def _band(seeds: Sequence[Series], measure: Measure) -> list[list[float]]:
    """Means with their intervals, clipped to what the quantity can be."""
    points = []
    for step, estimate in band(seeds):
        point = [float(step), _short(estimate.mean)]
        if not math.isnan(estimate.low):
            point += [
                _short(max(measure.least, estimate.low)),
                _short(min(measure.most, estimate.high)),
            ]
        points.append(point)
    return points


def _plain(series: Series) -> list[list[float]]:
    return [[float(step), _short(value)] for step, value in series]


def _short(value: float) -> float:
    return float(f"{value:.5g}")
