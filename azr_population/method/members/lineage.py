"""Where a child came from."""

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LineageRecord:
    """One replacement: who was born in whose place, made by what, from whom.

    `child` is the slot's name, which the victim had before; `generation` is the child's.
    `seed` remakes the child from its parents' weights at `step`. `fitness` and `parent_fitness` are
    the values that decided the replacement (None where none was measured), `mu` and `sigma` the
    rating that the child starts with. `step_sizes` are the operator's own, as they were used, by
    operator and option (`full_gaussian.eps`).
    """

    step: int
    child: str
    generation: int
    parents: tuple[str, ...]
    operator: str
    seed: int
    mu: float
    sigma: float
    options: dict[str, Any] = field(default_factory=dict)
    victim_fitness: float | None = None
    parent_fitness: tuple[float | None, ...] = ()
    step_sizes: dict[str, float] = field(default_factory=dict)
    hyperparameters: dict[str, float] = field(default_factory=dict)
    """The child's, where they evolve."""

    def to_json(self) -> dict[str, Any]:
        """The line of `lineage.jsonl`; non-finite fitness values become null."""
        return {
            "step": self.step,
            "child": self.child,
            "generation": self.generation,
            "parents": list(self.parents),
            "operator": self.operator,
            "options": dict(self.options),
            "step_sizes": dict(self.step_sizes),
            **({"hyperparameters": self.hyperparameters} if self.hyperparameters else {}),
            "seed": self.seed,
            "fitness": {
                "victim": _finite(self.victim_fitness),
                "parents": [_finite(value) for value in self.parent_fitness],
            },
            "mu": self.mu,
            "sigma": self.sigma,
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
