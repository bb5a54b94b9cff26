"""What became of the children of each operator: operator credit as the field calls it.

A run counts it as it goes (`method/evolution/credit.py`); here its records are played again,
because runs of older versions noted less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from azr_population.method.evolution.credit import OperatorCredit
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import (
    Record,
    config_of,
    conservative,
    number,
    roles_of,
    section,
    step_of,
    steps_of,
)

_FITNESS: dict[str, Callable[[Record], float | None]] = {
    "conservative_rating": conservative,
    "mu": lambda member: number(member.get("mu")),
}
"""Fitness functions that can be had from the metrics. Others are known of those replaced only."""
_COUNTED = ("born", "alive", "replaced", "mean_life")
"""What goes on between replacement steps, when the section `operators` is not written."""


def operator_credit(run: RunDirectory) -> list[dict[str, Any]]:
    """One row per operator, the most used first: `operator`, and `OperatorCredit.summary`.

    What the run noted in the section `operators` of its metrics is told as it is, if it counted the
    same children; all else is had from lineage and ratings.
    """
    births = [row for row in run.lineage() if step_of(row) is not None and row.get("child")]
    births.sort(key=lambda row: step_of(row) or 0)
    steps = steps_of(run)
    last = max([step["step"] for step in steps[-1:]] + [row["step"] for row in births], default=0)
    recorded: dict[str, Record] = {}
    for step in steps:
        recorded = section(step, "operators") or recorded
    rows = []
    for operator, row in _replayed(run, births).summary(last).items():
        noted = recorded.get(operator, {})
        # A run resumed from before there was credit has counted fewer children than were born.
        if noted.get("born", row["born"]) == row["born"]:
            row |= {
                k: noted[k] for k in row if k not in _COUNTED and number(noted.get(k)) is not None
            }
        rows.append({"operator": operator, **row})
    return sorted(rows, key=lambda row: (-row["born"], row["operator"]))


def _replayed(run: RunDirectory, births: list[dict[str, Any]]) -> OperatorCredit:
    """The credit of the births on record, given in the order of birth."""
    roles, credit = roles_of(run), OperatorCredit()
    by_step = {step["step"]: section(step, "members") for step in steps_of(run)}
    measure = _FITNESS.get(str(_setting(run, "fitness") or "conservative_rating"), lambda _: None)
    ready = ready_of(run)
    children = [str(birth["child"]) for birth in births]
    # Children are judged at a replacement step also where all are too young to be replaced.
    due = {step["step"] for step in steps_of(run) if "operators" in step}
    for step in sorted(due | {step_of(birth) or 0 for birth in births}):
        now = [birth for birth in births if step_of(birth) == step]
        victims = {str(birth["child"]): _victim(birth) for birth in now}
        replaced = [_role(roles, name) for name in victims]
        for role in dict.fromkeys(roles.values() if step in due else replaced):
            standing = {name: measure(member) for name, member in by_step.get(step, {}).items()}
            # The metrics are written after the replacement: the lineage has the victims' fitness.
            standing = {**dict.fromkeys(children), **standing, **victims}
            of_role = {name: fit for name, fit in standing.items() if _role(roles, name) == role}
            credit.judge(step, of_role, ready)
        for birth in now:
            parents = birth.get("parents")
            parent = str(parents[0]) if isinstance(parents, list) and parents else ""
            name = str(birth["child"])
            credit.birth(step, str(birth.get("operator", "?")), name, parent, victims[name])
    return credit


def ready_of(run: RunDirectory) -> float:
    """The steps in which a child cannot be replaced, by the run's configuration."""
    return number(_setting(run, "ready")) or 0.0


def _setting(run: RunDirectory, name: str) -> Any:
    """A field of `evolution`; inside AZR it is `population.evolution`."""
    local = config_of(run, "evolution", name)
    return config_of(run, "population", "evolution", name) if local is None else local


def _victim(birth: Record) -> float | None:
    fitness = birth.get("fitness")
    return number(fitness.get("victim")) if isinstance(fitness, dict) else None


def _role(roles: dict[str, str], name: str) -> str:
    return roles.get(name) or name.rpartition("_")[0]
