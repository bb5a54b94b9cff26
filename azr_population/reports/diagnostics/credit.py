"""What became of the children of each operator: operator credit as the field calls it.

Source: Fialho et al., "Extreme value based adaptive operator selection" (2008). A child is judged
at the first replacement step at which it could be replaced: `evolution.ready` steps after its birth
or later. Before, it survives whatever it is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from azr_population.reports.diagnostics.records import (
    Record,
    config_of,
    roles_of,
    section,
    step_of,
    steps_of,
)
from azr_population.reports.lines import conservative, mean, number
from azr_population.runs.directory import RunDirectory

_FITNESS: dict[str, Callable[[Record], float | None]] = {
    "conservative_rating": conservative,
    "mu": lambda member: number(member.get("mu")),
}
"""Fitness functions that can be had from the metrics. Others are known of those replaced only."""
_NOTED = ("judged", "passed", "gain_over_victim", "gain_over_parent")
"""What the section `operators` of the metrics tells of an operator's children."""


@dataclass
class _Life:
    operator: str
    born: int
    parent: str
    victim_fitness: float | None
    judged: int | None = None
    died: int | None = None
    fitness: float | None = None
    parent_fitness: float | None = None
    rank: float | None = None


def operator_credit(run: RunDirectory) -> list[dict[str, Any]]:
    """One row per operator, the most used first.

    `born`, `alive`, `replaced` count children; `mean_life` is in steps, until replaced or until the
    last step recorded. `judged` children met a replacement step at which they could be replaced
    and `passed` of them survived the first; over the judged, `mean_rank` is the share of the other
    members that the child then stood above (1: best, 0: worst), `mean_fitness` its fitness, and
    `gain_over_victim` and `gain_over_parent` its mean lead, in units of the fitness, over the
    member that it had replaced (when that was replaced) and over its first parent (then, where that
    still lives). None where nothing is known.

    `judged`, `passed` and the gains are those that the run noted in the section `operators` of its
    metrics, if it counted the same children; all else, and these otherwise, are had from lineage
    and ratings.
    """
    births = [row for row in run.lineage() if step_of(row) is not None and row.get("child")]
    births.sort(key=lambda row: step_of(row) or 0)
    lives = _lives(run, births)
    steps = steps_of(run)
    last = max([step["step"] for step in steps[-1:]] + [life.born for _, life in lives], default=0)
    recorded: dict[str, Record] = {}
    for one in steps:
        recorded = section(one, "operators") or recorded
    rows = []
    for operator in dict.fromkeys(life.operator for _, life in lives):
        own = [life for _, life in lives if life.operator == operator]
        judged = [life for life in own if life.judged is not None]
        replaced = sum(life.died is not None for life in own)
        rows.append(
            {
                "operator": operator,
                "born": len(own),
                "alive": len(own) - replaced,
                "replaced": replaced,
                "mean_life": mean((last if o.died is None else o.died) - o.born for o in own),
                "judged": len(judged),
                "passed": sum(life.died != life.judged for life in judged),
                "mean_rank": mean(life.rank for life in judged),
                "mean_fitness": mean(life.fitness for life in judged),
                "gain_over_victim": mean(_lead(o.fitness, o.victim_fitness) for o in judged),
                "gain_over_parent": mean(_lead(o.fitness, o.parent_fitness) for o in judged),
            }
        )
    for row in rows:
        noted = recorded.get(str(row["operator"]), {})
        # A run resumed from before there was credit has counted fewer children than were born.
        if noted.get("born", row["born"]) == row["born"]:
            for key in _NOTED:
                row[key] = row[key] if number(noted.get(key)) is None else noted[key]
    return sorted(rows, key=lambda row: (-row["born"], row["operator"]))


def _lives(run: RunDirectory, births: list[dict[str, Any]]) -> list[tuple[str, _Life]]:
    """Every child by name, in the order of birth, with what became of it."""
    roles = roles_of(run)
    by_step = {step["step"]: section(step, "members") for step in steps_of(run)}
    measure = _FITNESS.get(str(_setting(run, "fitness") or "conservative_rating"), lambda _: None)
    ready = number(_setting(run, "ready")) or 0.0
    lives: list[tuple[str, _Life]] = []
    # Children are judged at a replacement step also where all are too young to be replaced.
    due = {step["step"] for step in steps_of(run) if "operators" in step}
    for step in sorted(due | {step_of(birth) or 0 for birth in births}):
        now = [birth for birth in births if step_of(birth) == step]
        replaced = [_role(roles, str(birth["child"])) for birth in now]
        for role in dict.fromkeys(roles.values() if step in due else replaced):
            own = [birth for birth in now if _role(roles, str(birth["child"])) == role]
            standing = {
                name: measure(member)
                for name, member in by_step.get(step, {}).items()
                if _role(roles, name) == role
            }
            # The metrics are written after the replacement: what the victims had is in the lineage.
            standing |= {str(birth["child"]): _victim(birth) for birth in own}
            for name, life in lives:
                young = step - life.born < ready
                if life.judged is None and not young and _role(roles, name) == role:
                    life.judged = step
                    life.fitness = standing.get(name)
                    replaced_since = any(n == life.parent and o.born > life.born for n, o in lives)
                    life.parent_fitness = None if replaced_since else standing.get(life.parent)
                    life.rank = _rank(name, standing)
        for birth in now:
            child = str(birth["child"])
            for name, life in lives:
                if name == child and life.died is None:
                    life.died = step
            parents = birth.get("parents")
            parent = str(parents[0]) if isinstance(parents, list) and parents else ""
            operator = str(birth.get("operator", "?"))
            lives.append((child, _Life(operator, step, parent, _victim(birth))))
    return lives


def _setting(run: RunDirectory, name: str) -> Any:
    """A field of `evolution`; inside AZR it is `population.evolution`."""
    own = config_of(run, "evolution", name)
    return config_of(run, "population", "evolution", name) if own is None else own


def _victim(birth: Record) -> float | None:
    fitness = birth.get("fitness")
    return number(fitness.get("victim")) if isinstance(fitness, dict) else None


def _rank(name: str, standing: dict[str, float | None]) -> float | None:
    own = standing.get(name)
    others = [value for key, value in standing.items() if key != name and value is not None]
    if own is None or not others:
        return None
    return sum((value < own) + 0.5 * (value == own) for value in others) / len(others)


def _role(roles: dict[str, str], name: str) -> str:
    return roles.get(name) or name.rpartition("_")[0]


def _lead(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
