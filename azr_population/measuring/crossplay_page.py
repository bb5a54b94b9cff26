"""The matrix of a cross-play as a page of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence

from azr_population.measuring.outcome import Outcome
from azr_population.pages.web.document import document
from azr_population.pages.web.sections import text

_CELL, _MARGIN = 26, 190


def page(outcome: Outcome, words: Sequence[str]) -> str:
    """One HTML file: what came out in sentences, and the heat map."""
    runs = dict.fromkeys(one.run for one in outcome.teachers)
    listed = "".join(f"<li>{text(line)}</li>" for line in words)
    raw = {"words": f"<ul>{listed}</ul>", "map": heat_map(outcome)}
    return document("crossplay.html", (), {}, f"Cross-play of {', '.join(runs)}", raw)


def heat_map(outcome: Outcome) -> str:
    """SVG: a row per teacher, a column per student, the darker the more is solved."""
    matrix = outcome.matrix
    width = _MARGIN + _CELL * len(outcome.students)
    height = _MARGIN + _CELL * len(outcome.teachers)
    shapes = []
    for row, teacher in enumerate(outcome.teachers):
        y = _MARGIN + row * _CELL
        shapes.append(
            f'<text x="{_MARGIN - 6}" y="{y + 17}" text-anchor="end">{text(teacher.label)}</text>'
        )
        for column, student in enumerate(outcome.students):
            value = matrix[row, column]
            if math.isnan(value):
                continue
            x = _MARGIN + column * _CELL
            told = text(f"{student.label} solves {value:.0%} of {teacher.label}")
            shapes.append(
                f'<rect x="{x}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}" '
                f'fill="currentColor" fill-opacity="{value:.3f}"><title>{told}</title></rect>'
            )
    for column, student in enumerate(outcome.students):
        x = _MARGIN + column * _CELL + 17
        shapes.append(
            f'<text transform="translate({x} {_MARGIN - 6}) rotate(-90)">'
            f"{text(student.label)}</text>"
        )
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-size="11" '
        f'fill="currentColor" role="img" aria-label="Solve rates">{"".join(shapes)}</svg>'
    )
