"""Operator credit: what became of the children of each operator.

Adaptive operator selection calls the gain of a child over those it came from the operator's credit
(Fialho et al. 2008, "Extreme value based adaptive operator selection"); in population based
training the child first trains for an interval, so it is judged at the next replacement step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class ChildRecord:
    """A child from birth on. What it is worth is None until it is judged, and where it is unknown.

    `judged` is the first replacement step at which it could have been replaced, `died` the one at
    which it was. `rank` is the share of the others that it then stood above (ties count half).
    """

    operator: str
    child: str
    parent: str
    born: int
    victim_fitness: float | None
    judged: int | None = None
    gain_over_victim: float | None = None
    gain_over_parent: float | None = None
    died: int | None = None
    fitness: float | None = None
    rank: float | None = None


class OperatorCredit:
    """All births of a run; nothing is forgotten, so that a resumed run counts on."""

    def __init__(self) -> None:
        self._children: list[ChildRecord] = []

    def score_children(
        self, step: int, fitness: Mapping[str, float | None], ready: float = 0
    ) -> None:
        """Notes how the children stand at the first replacement step that they might not survive.

        `fitness` holds all members that take part in it, by name, before anyone is replaced, None
        where it is unknown; a child cannot be replaced in its first `ready` steps. Call before this
        step's births.
        """
        known = {name: value for name, value in fitness.items() if _is_known(value)}
        for life in self._children:
            young = step - life.born < ready
            if life.judged is not None or young or life.child not in fitness:
                continue
            life.judged = step
            life.fitness = known.get(life.child)
            life.rank = _rank(life.child, known)
            life.gain_over_victim = _gain(life.fitness, life.victim_fitness)
            if not self._was_replaced(life.parent, since=life.born):
                life.gain_over_parent = _gain(life.fitness, known.get(life.parent))

    def birth(
        self, step: int, operator: str, child: str, parent: str, victim_fitness: float | None
    ) -> None:
        """Notes a child in the place of `child`, by `operator` from the first parent `parent`."""
        for life in self._children:
            if life.child == child and life.died is None:
                life.died = step
        victim = victim_fitness if _is_known(victim_fitness) else None
        self._children.append(ChildRecord(operator, child, parent, step, victim))

    def summary(self, step: int) -> dict[str, dict[str, Any]]:
        """By operator, up to `step`; `evolution/<operator>/...` in `metrics.jsonl`.

        `born`, `replaced` and `alive` count children; `mean_life` is in steps, until replaced or
        until now. `judged` children met a replacement step at which they could be replaced,
        `passed` of them were not at the first. Over the judged, `mean_rank` is the share of the
        other members that the child then stood above (1: best, 0: worst), `mean_fitness` its
        fitness, and `gain_over_victim` and `gain_over_parent` its mean lead, in units of the
        fitness, over the member that it had replaced (when that was replaced) and over its first
        parent (then, where that still lives). None where nothing is known.
        """
        credits = {}
        for operator in dict.fromkeys(life.operator for life in self._children):
            lives = [life for life in self._children if life.operator == operator]
            ages = [(step if life.died is None else life.died) - life.born for life in lives]
            replaced = sum(life.died is not None for life in lives)
            judged = [life for life in lives if life.judged is not None]
            credits[operator] = {
                "born": len(lives),
                "alive": len(lives) - replaced,
                "replaced": replaced,
                "mean_life": sum(ages) / len(lives),
                "judged": len(judged),
                "passed": sum(life.died != life.judged for life in judged),
                "mean_rank": _mean(life.rank for life in judged),
                "mean_fitness": _mean(life.fitness for life in judged),
                "gain_over_victim": _mean(life.gain_over_victim for life in judged),
                "gain_over_parent": _mean(life.gain_over_parent for life in judged),
            }
        return credits

    def _was_replaced(self, name: str, since: int) -> bool:
        return any(life.child == name and life.born > since for life in self._children)

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data for a checkpoint."""
        return [asdict(life) for life in self._children]

    @classmethod
    def from_json(cls, rows: Iterable[Mapping[str, Any]]) -> OperatorCredit:
        """What `to_json` wrote."""
        credit = cls()
        credit._children = [ChildRecord(**row) for row in rows]
        return credit


def _is_known(fitness: float | None) -> bool:
    return fitness is not None and math.isfinite(fitness)


def _gain(fitness: float | None, other: float | None) -> float | None:
    return None if fitness is None or other is None else fitness - other


def _rank(name: str, known: Mapping[str, float | None]) -> float | None:
    value = known.get(name)
    others = [other for key, other in known.items() if key != name and other is not None]
    if value is None or not others:
        return None
    return sum((other < value) + 0.5 * (other == value) for other in others) / len(others)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
