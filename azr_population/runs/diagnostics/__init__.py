"""What a run's records say: series over steps, intervals over seeds, budgets, credit, coverage."""

from azr_population.runs.diagnostics import (  # noqa: F401  (they read measures)
    from_evaluation,
    from_exams,
    from_lineage,
    from_metrics,
    from_tasks,
)
from azr_population.runs.diagnostics.catalogue import last_step, readings, series
from azr_population.runs.diagnostics.changes import Change, changes
from azr_population.runs.diagnostics.consumption import consumption
from azr_population.runs.diagnostics.coverage import Cell, CoverageMap, coverage_map
from azr_population.runs.diagnostics.credit import operator_credit, ready_of
from azr_population.runs.diagnostics.kept import keep
from azr_population.runs.diagnostics.match_ups import match_ups
from azr_population.runs.diagnostics.measures import MEASURES, find_measure
from azr_population.runs.diagnostics.statistics import (
    Estimate,
    Series,
    band,
    difference,
    interval,
)

__all__ = [
    "MEASURES",
    "Cell",
    "Change",
    "CoverageMap",
    "Estimate",
    "Series",
    "band",
    "changes",
    "consumption",
    "coverage_map",
    "difference",
    "find_measure",
    "interval",
    "keep",
    "last_step",
    "match_ups",
    "operator_credit",
    "readings",
    "ready_of",
    "series",
]
