"""The curves laid over each other: a line with a band per arm, and a thin line per seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from azr_population.pages.comparison.inputs import Arm
from azr_population.runs.diagnostics import Series, band

MAX_POINTS = 50
"""Points per line. Longer runs are drawn by means over spans of steps, the same for all arms. Exams
are rare and precise, and drawn as they are."""

_MAY_BE_NEGATIVE = frozenset({"proposal_reward"})

CURVES = (
    ("skill", "exam_mean", "Exam, mean of the members", "percent", "the same held-out tasks"),
    ("skill", "exam_best", "Exam, best member", "percent", "the same held-out tasks"),
    ("skill", "exam_worst", "Exam, worst member", "percent", "the same held-out tasks"),
    ("complexity", "ast_nodes", "AST nodes", "number", "per valid program"),
    ("complexity", "ast_depth", "AST depth", "number", "per valid program"),
    ("complexity", "cyclomatic", "Cyclomatic complexity", "number", "per valid program"),
    ("complexity", "lines", "Lines of code", "number", "per valid program"),
    ("complexity", "halstead_volume", "Halstead volume", "number", "bits, per valid program"),
    ("space", "coverage", "Kinds of problems covered", "number", "so far: this can only grow"),
    (
        "space",
        "coverage_per_task",
        "Kinds per equal number of tasks",
        "number",
        "so far, at equal tasks",
    ),
    ("space", "unique", "Unique proposals", "percent", "of the valid ones"),
    ("proposing", "validity", "Valid proposals", "percent", "that ran and passed the rules"),
    ("proposing", "solve_rate", "Solve rate", "percent", "of valid tasks, which change meanwhile"),
    ("proposing", "proposal_reward", "Reward of proposals", "number", "by each arm's own rule"),
    ("proposing", "proposal_tokens", "Proposal length", "number", "tokens"),
    ("proposing", "answer_tokens", "Answer length", "number", "tokens"),
    ("training", "entropy", "Entropy", "number", "nats per sampled token"),
    ("training", "seconds", "Seconds per step", "number", "wall-clock time"),
)
"""section, diagnostic, title, format, note"""

DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2")


def curves(arms: Sequence[Arm]) -> list[dict[str, Any]]:
    """The charts that have data, as `report.charts.line_charts` gives them.

    Points of a main line are `[step, mean, low, high]` (95%, Student's t over seeds) where the arm
    has several seeds, else `[step, value]`.
    """
    last = max((run.last for arm in arms for run in arm.runs), default=0)
    span = math.ceil(last / MAX_POINTS) or 1
    charts = []
    for where, diagnostic, title, form, note in CURVES:
        lines: list[dict[str, Any]] = []
        width = 1 if diagnostic.startswith("exam") else span
        least = -math.inf if diagnostic in _MAY_BE_NEGATIVE else 0.0
        most = 1.0 if form == "percent" else math.inf
        for i, arm in enumerate(arms):
            series = [run.series(diagnostic) for run in arm.independent]
            seeds = [_spans(run_series, width, last) for run_series in series if run_series]
            look = {"colour": f"line-{i % 8}", "dash": DASHES[i % len(DASHES)]}
            points = _band(seeds, least, most)
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
                    "section": where,
                    "title": title,
                    "format": form,
                    "note": note + spans,
                    "lines": lines,
                    **({"scale": "exam"} if diagnostic.startswith("exam") else {}),
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


def _band(seeds: Sequence[Series], least: float, most: float) -> list[list[float]]:
    """Means with their intervals, clipped to what the quantity can be."""
    points = []
    for step, estimate in band(seeds):
        point = [float(step), _short(estimate.mean)]
        if not math.isnan(estimate.low):
            point += [_short(max(least, estimate.low)), _short(min(most, estimate.high))]
        points.append(point)
    return points


def _plain(series: Series) -> list[list[float]]:
    return [[float(step), _short(value)] for step, value in series]


def _short(value: float) -> float:
    return float(f"{value:.5g}")
