"""Diagnostics of a run whose stored members have played each other (`azr-population crossplay`)."""

from __future__ import annotations

from functools import partial

from azr_population.errors import UserError
from azr_population.files import read_json
from azr_population.runs.diagnostics.catalogue import DIAGNOSTICS, last_step
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import number

CROSSPLAY = "crossplay.json"
"""Where a run's own cross-play lies in it."""


def _slope(run: RunDirectory, role: str) -> dict[str, Series]:
    """One value, at the last step; nothing where nobody has played."""
    path = run.path / CROSSPLAY
    try:
        content = read_json(path) if path.is_file() else {}
    except UserError:
        return {}
    slopes = content.get("slopes") if isinstance(content, dict) else None
    value = number(slopes.get(role)) if isinstance(slopes, dict) else None
    return {} if value is None else {"": [(last_step(run), value)]}


for _role, _what in (
    ("student", "solve rate of students on the tasks of the earliest teachers"),
    ("teacher", "share of unsolved tasks of teachers against the earliest students"),
):
    DIAGNOSTICS.register(
        f"{_role}_slope",
        f"change per 100 steps of the {_what}, of a run that has played cross-play",
    )(partial(_slope, role=_role))
