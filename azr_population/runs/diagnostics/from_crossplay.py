"""Diagnostics of a run whose stored members have played each other (`azr-population crossplay`)."""

from azr_population.domains.measure import Measure
from azr_population.errors import UserError
from azr_population.files import read_json
from azr_population.runs.diagnostics.catalogue import last_step, reads
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import number

CROSSPLAY = "crossplay.json"
"""Where a run's own cross-play lies in it."""


@reads("student_slope", "teacher_slope")
def _slope(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """One value, at the last step; nothing where nobody has played."""
    path = run.path / CROSSPLAY
    try:
        content = read_json(path) if path.is_file() else {}
    except UserError:
        return {}
    slopes = content.get("slopes") if isinstance(content, dict) else None
    value = (
        number(slopes.get(measure.name.removesuffix("_slope")))
        if isinstance(slopes, dict)
        else None
    )
    return {} if value is None else {"": [(last_step(run), value)]}
