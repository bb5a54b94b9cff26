"""The page of a cross-play: the matrix of solve rates as a heat map, and what came out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from azr_population.analysis import charts, html
from azr_population.analysis.statistics import interval

if TYPE_CHECKING:
    from azr_population.measuring.crossplay import CrossPlay
    from azr_population.measuring.stored import StoredMember

_CELL = 30
"""Pixels."""


def crossplay_page(outcome: CrossPlay, sentences: Sequence[str]) -> str:
    """One HTML file: the heat map, and the sentences."""
    runs = dict.fromkeys(teacher.run for teacher in outcome.teachers)
    chart = charts.heatmap(solve_rates(outcome), cell=_CELL, counts="tasks")
    note = (
        "Percent of a teacher's valid tasks (row) that a student (column) solves, by the step at "
        "which each was stored. Point at a cell for its interval and the number of tasks."
    )
    return html.page(
        "crossplay.html.j2",
        f"Cross-play of {', '.join(runs)}",
        matrix=html.embed(chart, "Solve rates", note, "natural"),
        sentences=sentences,
    )


def solve_rates(outcome: CrossPlay) -> pd.DataFrame:
    """A line per teacher (`row`) and student (`column`): `value`, its 95% interval over tasks
    (`low`, `high`), and the number of valid tasks (`count`); no value without tasks."""
    several = len({member.run for member in (*outcome.teachers, *outcome.students)}) > 1
    lines = []
    for teacher, rates in zip(outcome.teachers, outcome.rates, strict=True):
        for place, student in enumerate(outcome.students):
            solved = rates[place] if rates.size else rates.ravel()
            test = interval(solved.tolist())
            who = (_label(teacher, several), _label(student, several))
            lines.append((*who, test.mean, test.low, test.high, len(solved)))
    frame = pd.DataFrame(lines, columns=["row", "column", "value", "low", "high", "count"])
    return frame.assign(low=frame["low"].clip(0.0, 1.0), high=frame["high"].clip(0.0, 1.0))


def _label(member: StoredMember, several: bool) -> str:
    """`step 75, T2`, after the run's name where there are several."""
    role, _, place = member.name.rpartition("_")
    label = f"step {member.step}, {role[:1].upper()}{place}"
    return f"{member.run}, {label}" if several else label
