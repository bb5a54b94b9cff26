"""What became of the children of each operator: operator credit as the field calls it."""

from typing import Any

from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import Record, config_of, number, section, steps_of


def operator_credit(run: RunDirectory) -> list[dict[str, Any]]:
    """One row per operator, the most used first, as the run noted it at its last replacement:
    `operator`, and what `OperatorCredit.summary` says."""
    noted: dict[str, Record] = {}
    for step in steps_of(run):
        noted = section(step, "operators") or noted
    rows = [{"operator": operator, **row} for operator, row in noted.items()]
    return sorted(rows, key=lambda row: (-(number(row.get("born")) or 0), row["operator"]))


def ready_of(run: RunDirectory) -> float:
    """The steps in which a child cannot be replaced, by the run's configuration; inside AZR
    `evolution` is `population.evolution`."""
    places = (("evolution", "grace_period"), ("population", "evolution", "grace_period"))
    return next((known for keys in places if (known := number(config_of(run, *keys)))), 0.0)
