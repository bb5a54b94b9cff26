"""From a mix of operators to a child: the draw, sequences of operators, step sizes, credit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from azr_population.adapters.adapter import Adapter
from azr_population.errors import UserError
from azr_population.evolution.operator import OPERATORS, Operator

ATTEMPTS = 8
"""How often a child with a value that is not finite is drawn again before the step fails."""
SEQUENCE = "+"


class Child(NamedTuple):
    """A child, the operator (or sequence, `svd_subspace+full_gaussian`) that made it, and the
    options it was made with."""

    adapter: Adapter
    operator: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Sequential:
    """Operators one after the other: the first takes the parents, each other one the child so far.

    Options and defaults carry the operator's name: `full_gaussian.eps`.
    """

    name: str
    steps: tuple[Operator, ...]

    @property
    def parents(self) -> int:
        return self.steps[0].parents

    @property
    def defaults(self) -> dict[str, float | None]:
        return {f"{s.name}.{key}": value for s in self.steps for key, value in s.defaults.items()}

    @property
    def step_sizes(self) -> tuple[str, ...]:
        return tuple(f"{s.name}.{s.step_size}" for s in self.steps if s.step_size)

    def resolve(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """As `Operator.resolve`."""
        unknown = options.keys() - self.defaults.keys()
        if unknown:
            known = ", ".join(self.defaults) or "none"
            raise UserError(f"{self.name} has no option {min(unknown)}; its options: {known}")
        return {
            f"{step.name}.{key}": value
            for step in self.steps
            for key, value in step.resolve(self._own(step, options)).items()
        }

    def __call__(
        self, parents: Sequence[Adapter], generator: torch.Generator, **options: float | None
    ) -> Adapter:
        """As `Operator.__call__`."""
        self.resolve(options)
        child = self.steps[0](parents, generator, **self._own(self.steps[0], options))
        for step in self.steps[1:]:
            child = step([child], generator, **self._own(step, options))
        return child

    def _own(self, step: Operator, options: Mapping[str, Any]) -> dict[str, Any]:
        prefix = f"{step.name}."
        return {k.removeprefix(prefix): v for k, v in options.items() if k.startswith(prefix)}


def find(name: str) -> Operator | Sequential:
    """The operator, or the sequence of operators joined by `+`, of that name.

    Raises UserError when there is none; the message lists the valid names.
    """
    names = str(name).split(SEQUENCE)
    steps = tuple(OPERATORS.find(part.strip()).function for part in names)
    if len(steps) == 1:
        return steps[0]
    for step in steps[1:]:
        if step.parents != 1:
            raise UserError(f"{name}: {step.name} needs two parents, so it can only come first")
    if len({step.name for step in steps}) < len(steps):
        raise UserError(f"{name}: an operator may come only once in a sequence")
    return Sequential(name, steps)


def breed(
    mix: Mapping[str, float],
    parents: Sequence[Adapter],
    generator: torch.Generator,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    adapt: float = 0.0,
    inherited: Mapping[str, float] | None = None,
) -> Child:
    """One child, by an operator drawn from the mix.

    `mix` gives operators (or sequences) their weights; those that need more parents than there are
    are left out. `parents` come with the better one first; `options` are given by operator.
    With `adapt` = tau > 0 the operator's step sizes are multiplied by exp(tau N(0, 1)) (log-normal
    self-adaptation, Schwefel 1981): of those in `inherited` (the `options` that the first parent
    was made with), or else of the defaults. A child that is not finite is drawn again.

    Raises UserError for an unknown operator or option, weights that leave nothing to draw, parents
    that do not fit, and after `ATTEMPTS` children that were not finite.
    """
    candidates = {name: find(name) for name, weight in mix.items() if _weight(name, weight) > 0}
    usable = {name: op for name, op in candidates.items() if op.parents <= len(parents)}
    if not usable:
        reason = "all weights are 0" if not candidates else f"{len(parents)} parents are too few"
        raise UserError(f"no operator of the mix ({', '.join(mix)}) can be used: {reason}")
    for _ in range(ATTEMPTS):
        weights = torch.tensor([mix[name] for name in usable], dtype=torch.float64)
        drawn = torch.multinomial(weights.to(generator.device), 1, generator=generator)
        name = list(usable)[int(drawn)]
        chosen = usable[name]
        resolved = chosen.resolve((options or {}).get(name, {}))
        if adapt > 0:
            resolved |= _adapted(chosen, resolved, inherited or {}, adapt, generator)
        child = chosen(parents, generator, **resolved)
        if is_finite(child):
            used = {key: value for key, value in resolved.items() if value is not None}
            return Child(child, name, used)
    raise UserError(
        f"{ATTEMPTS} children in a row held NaN or Inf, the last one by {name}; "
        "the parents' weights are too large for their dtype"
    )


def is_finite(adapter: Adapter) -> bool:
    """Whether all values of all factors are finite."""
    return all(
        bool(torch.isfinite(factor.sum(dtype=torch.float32)) or torch.isfinite(factor).all())
        for pair in adapter.factors.values()
        for factor in (pair.A, pair.B)
    )


@dataclass(frozen=True)
class Credit:
    """How an operator's children fared: `born`, `replaced` since, and the mean number of steps that
    they lived (until replaced, or until the last step of the record)."""

    operator: str
    born: int
    replaced: int
    mean_life: float

    @property
    def survival(self) -> float:
        """Share of the children that are still there."""
        return 1 - self.replaced / self.born


def credit(records: Iterable[Mapping[str, Any]], last_step: int) -> list[Credit]:
    """What each operator's children came to, from the lines of `lineage.jsonl`, best first.

    A record has `step`, `child` (the slot's name) and `operator`; a child is replaced when a later
    record has the same `child`. `last_step` is the last step of the run.
    """
    lives: dict[str, list[tuple[int, bool]]] = {}
    open_: dict[str, tuple[int, str]] = {}
    for record in sorted(records, key=lambda record: record["step"]):
        if record["child"] in open_:
            born, operator = open_[record["child"]]
            lives.setdefault(operator, []).append((record["step"] - born, True))
        open_[record["child"]] = (record["step"], record["operator"])
    for born, operator in open_.values():
        lives.setdefault(operator, []).append((last_step - born, False))
    credits = [
        Credit(
            operator,
            len(ends),
            sum(replaced for _, replaced in ends),
            sum(life for life, _ in ends) / len(ends),
        )
        for operator, ends in lives.items()
    ]
    return sorted(credits, key=lambda c: (-c.survival, -c.mean_life, c.operator))


def _weight(name: str, weight: float) -> float:
    if not math.isfinite(weight) or weight < 0:
        raise UserError(f"the weight of {name} is {weight}; it must be 0 or more")
    return weight


def _adapted(
    chosen: Operator | Sequential,
    resolved: Mapping[str, Any],
    inherited: Mapping[str, float],
    tau: float,
    generator: torch.Generator,
) -> dict[str, float]:
    """New values of the step sizes, within the operator's ranges."""
    if isinstance(chosen, Sequential):
        names = chosen.step_sizes
        limits = {f"{s.name}.{k}": r for s in chosen.steps for k, r in s.ranges.items()}
    else:
        names = (chosen.step_size,) if chosen.step_size else ()
        limits = dict(chosen.ranges)
    steps = {}
    for name in names:
        drawn = float(torch.randn((), generator=generator, device=generator.device))
        size = float(inherited.get(name, resolved[name])) * math.exp(tau * drawn)
        low, high = limits[name]
        steps[name] = min(max(size, low), high)
    return steps
