"""The page of a cross-play: what came out, and the matrix of solve rates as a heat map."""

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup

from azr_population.measuring.outcome import Outcome
from azr_population.measuring.stored import StoredMember
from azr_population.pages.web.document import document
from azr_population.pages.web.templates import piece

_CELL, _TOP, _LEFT = 30, 76, 122
_SCALE = 5
"""Steps of the colour scale."""


def page(outcome: Outcome, words: Sequence[str]) -> str:
    """One HTML file: the heat map, and what came out in sentences."""
    runs = dict.fromkeys(one.run for one in outcome.teachers)
    title = f"Cross-play of {', '.join(runs)}"
    return document("crossplay.html", (), {}, title, words=words, map=heat_map(outcome))


def heat_map(outcome: Outcome) -> Markup:
    """SVG: a row per teacher, a column per student, grouped by run and step; the stronger the
    colour, the more is solved."""
    cells = []
    for row, (teacher, rate) in enumerate(zip(outcome.teachers, outcome.rates, strict=True)):
        for column, student in enumerate(outcome.students):
            own = rate[column] if rate.size else []
            value = float(rate[column].mean()) if len(own) else None
            told = f"{teacher.label} has no valid task"
            if value is not None:
                half = 1.96 * float(rate[column].std()) / math.sqrt(len(own))
                low, high = max(0.0, value - half), min(1.0, value + half)
                told = f"{student.label} solves {value:.0%} [{low:.0%}, {high:.0%}] of "
                told += f"{teacher.label} ({len(own)} tasks)"
            cells.append({"x": column, "y": row, "value": value, "told": told})
    several = len({one.run for one in (*outcome.teachers, *outcome.students)}) > 1
    return piece(
        "heat.html",
        cells=cells,
        columns=_groups(outcome.students, several),
        rows=_groups(outcome.teachers, several),
        names=[[one.name.rpartition("_")[2] for one in outcome.students]],
        row_names=[one.name for one in outcome.teachers],
        size=_CELL,
        left=_LEFT + (90 if several else 0),
        top=_TOP,
        width=_LEFT + (90 if several else 0) + _CELL * len(outcome.students) + 8,
        height=_TOP + _CELL * len(outcome.teachers) + 8,
        scale=[(n / (_SCALE - 1)) for n in range(_SCALE)],
    )


def _groups(members: Sequence[StoredMember], several: bool) -> list[dict[str, Any]]:
    """Neighbours of one run and step: where they begin, how many they are, what they are called."""
    found: list[dict[str, Any]] = []
    at = 0
    for (run, step), group in groupby(members, key=lambda one: (one.run, one.step)):
        count = len(list(group))
        label = f"{run}, step {step}" if several else f"step {step}"
        found.append({"at": at, "count": count, "label": label})
        at += count
    return found
