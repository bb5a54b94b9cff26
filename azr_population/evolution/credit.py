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
class Life:
    """A child from birth on. Gains are None until it is judged, and where a fitness is unknown.

    `judged` is the first replacement step at which it could have been replaced, `died` the one at
    which it was.
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


class OperatorCredit:
    """All births of a run; nothing is forgotten, so that a resumed run counts on."""

    def __init__(self) -> None:
        self._lives: list[Life] = []

    def judge(self, step: int, fitness: Mapping[str, float], ready: int = 0) -> None:
        """Notes how the children stand at the first replacement step that they might not survive.

        `fitness` holds all members that take part in it, by name, before anyone is replaced; a
        child cannot be replaced in its first `ready` steps. Call before this step's births.
        """
        for life in self._lives:
            young = step - life.born < ready
            if life.judged is not None or young or life.child not in fitness:
                continue
            life.judged = step
            life.gain_over_victim = _gain(fitness[life.child], life.victim_fitness)
            if not self._was_replaced(life.parent, since=life.born):
                life.gain_over_parent = _gain(fitness[life.child], fitness.get(life.parent))

    def birth(
        self, step: int, operator: str, child: str, parent: str, victim_fitness: float
    ) -> None:
        """Notes a child in the place of `child`, by `operator` from the first parent `parent`."""
        for life in self._lives:
            if life.child == child and life.died is None:
                life.died = step
        known = victim_fitness if math.isfinite(victim_fitness) else None
        self._lives.append(Life(operator, child, parent, step, known))

    def summary(self, step: int) -> dict[str, dict[str, Any]]:
        """By operator, up to `step`; the section `operators` of `metrics.jsonl`.

        `born`, `replaced` and `alive` count children; `mean_life` is in steps, until replaced or
        until now. `judged` children met a replacement step at which they could be replaced,
        `passed` of them were not at the first. `gain_over_victim` and `gain_over_parent` are the
        mean differences, in units of the fitness, between a child at that step and the member it
        replaced (when that was replaced), and its first parent (at that same step, where it still
        lives); None where nothing is known.
        """
        found = {}
        for operator in dict.fromkeys(life.operator for life in self._lives):
            own = [life for life in self._lives if life.operator == operator]
            ends = [step if life.died is None else life.died for life in own]
            replaced = sum(life.died is not None for life in own)
            judged = [life for life in own if life.judged is not None]
            found[operator] = {
                "born": len(own),
                "alive": len(own) - replaced,
                "replaced": replaced,
                "mean_life": sum(e - o.born for e, o in zip(ends, own, strict=True)) / len(own),
                "judged": len(judged),
                "passed": sum(life.died != life.judged for life in judged),
                "gain_over_victim": _mean(life.gain_over_victim for life in judged),
                "gain_over_parent": _mean(life.gain_over_parent for life in judged),
            }
        return found

    def _was_replaced(self, name: str, since: int) -> bool:
        return any(life.child == name and life.born > since for life in self._lives)

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data for a checkpoint."""
        return [asdict(life) for life in self._lives]

    @classmethod
    def from_json(cls, rows: Iterable[Mapping[str, Any]]) -> OperatorCredit:
        """What `to_json` wrote."""
        credit = cls()
        credit._lives = [Life(**row) for row in rows]
        return credit


def _gain(fitness: float, other: float | None) -> float | None:
    if other is None or not (math.isfinite(fitness) and math.isfinite(other)):
        return None
    return fitness - other


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
