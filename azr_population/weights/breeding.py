"""From a mix of operators to a child: the draw, sequences of operators, step sizes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from azr_population.errors import UserError
from azr_population.weights import operators as _registered  # noqa: F401
from azr_population.weights.adapter import Adapter, Factors, LoraSpec, is_finite
from azr_population.weights.operator import OPERATORS, Operator

PAPER_CODES = ("M1", "M2", "M3", "M4", "X1", "X2", "X3", "X4")
"""The eight operators that PopuLoRA ships; others are off unless a mix names them."""
ATTEMPTS = 8
"""How often a child with a value that is not finite is drawn again before the step fails."""
SEQUENCE = "+"
SMALLEST_STEP = 0.01
"""An adapted step size stays above this share of what it would be unadapted: selection likes
children that differ little from good parents, and step sizes would die out."""


class Child(NamedTuple):
    """A child, the operator (or sequence, `svd_subspace+full_gaussian`) that made it, the options
    it was made with, and those of them that are step sizes, by operator and option."""

    adapter: Adapter
    operator: str
    options: dict[str, Any]
    step_sizes: dict[str, float]


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
    def ranges(self) -> dict[str, tuple[float, float]]:
        return {f"{s.name}.{key}": limits for s in self.steps for key, limits in s.ranges.items()}

    def resolve(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """As `Operator.resolve`."""
        unknown = options.keys() - self.defaults.keys()
        if unknown:
            names = ", ".join(self.defaults) or "none"
            raise UserError(f"{self.name} has no option {min(unknown)}; its options: {names}")
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


def all_operators() -> list[Operator]:
    """All operators, in the order of their codes: mutations, crossovers, those without."""
    operators = (entry.function for entry in OPERATORS)
    return sorted(operators, key=lambda operator: operator.code or "~")


def get_operator(name: str) -> Operator | Sequential:
    """The operator, or the sequence of operators joined by `+`, of that name or path. Raises
    UserError when there is none; the message lists the valid names."""
    names = str(name).split(SEQUENCE)
    entries = [OPERATORS.find(part.strip()) for part in names]
    steps = tuple(replace(entry.function, name=entry.name) for entry in entries)
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
    are left out. `parents` come with the better one first. `options` are given by operator, and
    hold in sequences too, unless given for the sequence: {"dare+full_gaussian": {"dare.p": 0.5}}.
    With `adapt` = tau > 0 the operator's step sizes are multiplied by exp(tau N(0, 1)) (log-normal
    self-adaptation, Schwefel 1981): of those in `inherited` (`full_gaussian.eps`: the step sizes of
    the first parent), or else of the options. A child that is not finite is drawn again.

    Raises UserError for an unknown operator or option, weights that leave nothing to draw, parents
    that do not fit, and after `ATTEMPTS` children that were not finite.
    """
    candidates = {
        name: get_operator(name) for name, weight in mix.items() if _weight(name, weight) > 0
    }
    usable = {name: op for name, op in candidates.items() if op.parents <= len(parents)}
    if not usable:
        reason = "all weights are 0" if not candidates else f"{len(parents)} parents are too few"
        raise UserError(f"no operator of the mix ({', '.join(mix)}) can be used: {reason}")
    for _ in range(ATTEMPTS):
        weights = torch.tensor([mix[name] for name in usable], dtype=torch.float64)
        index = torch.multinomial(weights.to(generator.device), 1, generator=generator)
        name = list(usable)[int(index)]
        chosen = usable[name]
        resolved = chosen.resolve(options_of(chosen, options or {}))
        steps = step_sizes(chosen)
        if adapt > 0:
            for key, option in steps.items():
                start = float((inherited or {}).get(key, resolved[option]))
                turn = float(torch.randn((), generator=generator, device=generator.device))
                low, high = chosen.ranges[option]
                low = max(low, SMALLEST_STEP * resolved[option])
                resolved[option] = min(max(start * math.exp(adapt * turn), low), high)
        child = chosen(parents, generator, **resolved)
        if is_finite(child):
            used = {key: value for key, value in resolved.items() if value is not None}
            return Child(child, name, used, {key: used[option] for key, option in steps.items()})
    raise UserError(
        f"{ATTEMPTS} children in a row held NaN or Inf, the last one by {name}; "
        "the parents' weights are too large for their dtype"
    )


def options_of(
    chosen: Operator | Sequential, options: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """What `options`, given by operator, say about this operator or sequence."""
    chosen_options = dict(options.get(chosen.name, {}))
    if isinstance(chosen, Operator):
        return chosen_options
    parts = {
        f"{step.name}.{key}": value
        for step in chosen.steps
        for key, value in options.get(step.name, {}).items()
    }
    return {**parts, **chosen_options}


def step_sizes(chosen: Operator | Sequential) -> dict[str, str]:
    """Its step sizes: `full_gaussian.eps` -> the option's name in `chosen` itself."""
    if isinstance(chosen, Operator):
        return {f"{chosen.name}.{chosen.step_size}": chosen.step_size} if chosen.step_size else {}
    return {key: key for step in chosen.steps for key in step_sizes(step)}


def dry_run(mix: Mapping[str, float], options: Mapping[str, Mapping[str, Any]], rank: int) -> None:
    """Makes a child of tiny parents of that rank by every operator that the mix may draw. Raises
    UserError for what would otherwise stop a run at its first replacement: unknown names, options
    out of range, options that contradict each other or the rank."""
    for name in (*mix, *options):
        chosen = get_operator(name)
        resolved = chosen.resolve(options_of(chosen, options))
        if _weight(name, mix.get(name, 0)) == 0:
            continue
        generator = torch.Generator().manual_seed(0)
        parents = [
            Adapter(
                LoraSpec(rank, rank),
                {
                    "layer": Factors(
                        torch.randn(rank, rank + 1, generator=generator),
                        torch.randn(rank + 1, rank, generator=generator),
                    )
                },
            )
            for _ in range(chosen.parents)
        ]
        chosen(parents, generator, **resolved)


def _weight(name: str, weight: float) -> float:
    if not math.isfinite(weight) or weight < 0:
        raise UserError(f"the weight of {name} is {weight}; it must be 0 or more")
    return weight


class Making(NamedTuple):
    """How a child was made: the operator that was drawn, its options and its step sizes."""

    operator: str
    options: dict[str, Any]
    step_sizes: dict[str, float]


def bred(
    parents: Sequence[Adapter], recipe: Mapping[str, Any], seed: int
) -> tuple[Adapter, Making]:
    """A child of `parents` by `recipe`, the keywords of `breed`; the same for the same seed."""
    child = breed(parents=parents, generator=torch.Generator().manual_seed(seed), **recipe)
    return child.adapter, Making(child.operator, child.options, child.step_sizes)
