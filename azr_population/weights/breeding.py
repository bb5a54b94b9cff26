"""Breeding a child: draws an operator from a mix, applies sequences, adapts step sizes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from azr_population.errors import UserError
from azr_population.weights import operators as _registered  # noqa: F401
from azr_population.weights.adapter import Adapter, Factors, LoraSpec, first_not_finite
from azr_population.weights.operator import OPERATORS, Operator

ATTEMPTS = 8
"""Attempts at a child with finite values before the step fails."""
SMALLEST_STEP = 0.01
"""An adapted step size stays above this share of the configured one. Otherwise step sizes would
vanish, because selection prefers children that differ little from good parents."""


class Breeding(NamedTuple):
    """How a child was made: the operator (or sequence, `svd_subspace+full_gaussian`), its options,
    and its step sizes by operator and option."""

    operator: str
    options: dict[str, Any]
    step_sizes: dict[str, float]


def all_operators() -> list[Operator]:
    """All operators, in the order of their codes: mutations, crossovers, those without."""
    return sorted(OPERATORS.values(), key=lambda operator: operator.code or "~")


def get_operator(name: str) -> Operator:
    """The operator, or the sequence joined by `+`, of that name or path. Raises UserError: unknown;
    the message lists the valid names."""
    names = [part.strip() for part in str(name).split("+")]
    steps = tuple(replace(OPERATORS.find(step), name=step) for step in names)
    if len(steps) == 1:
        return steps[0]
    for step in steps[1:]:
        if step.parents != 1:
            raise UserError(f"{name}: {step.name} needs two parents, so it can only come first")
    if len({step.name for step in steps}) < len(steps):
        raise UserError(f"{name}: an operator may come only once in a sequence")

    def in_turn(
        parents: Sequence[Adapter], generator: torch.Generator, **options: float | None
    ) -> Adapter:
        """The first operator takes the parents, each further one the child so far."""
        for step in steps:
            own = {key: options[f"{step.name}.{key}"] for key in step.defaults}
            parents = [step(parents, generator, **own)]
        return parents[0]

    defaults = {f"{step.name}.{key}": step.defaults[key] for step in steps for key in step.defaults}
    ranges = {f"{step.name}.{key}": step.ranges[key] for step in steps for key in step.ranges}
    return Operator(name, "", steps[0].parents, defaults, ranges, in_turn, steps=steps)


def breed(
    mix: Mapping[str, float],
    parents: Sequence[Adapter],
    generator: torch.Generator,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    adapt: float = 0.0,
    inherited: Mapping[str, float] | None = None,
) -> tuple[Adapter, Breeding]:
    """One child by an operator drawn from the mix, and how it was made.

    `mix` has the weights of operators (or sequences); those that need more parents than given are
    left out. `parents`: the better one first. `options` are by operator; they also apply inside a
    sequence unless the sequence has its own: {"dare+full_gaussian": {"dare.p": 0.5}}. With
    `adapt` = tau > 0 the operator's step sizes are multiplied by exp(tau N(0, 1)) (log-normal
    self-adaptation, Schwefel 1981), starting from `inherited` (the first parent's step sizes, such
    as `full_gaussian.eps`) or else from the options. A child that is not finite is drawn again.

    Raises UserError: an unknown operator or option, nothing to draw, parents that do not fit, or
    `ATTEMPTS` children in a row that are not finite.
    """
    usable = usable_operators(mix, len(parents))
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
        if first_not_finite(child) is None:
            used = {key: value for key, value in resolved.items() if value is not None}
            sizes = {key: used[option] for key, option in steps.items()}
            return child, Breeding(name, used, sizes)
    raise UserError(
        f"{ATTEMPTS} children in a row held NaN or Inf, the last one by {name}; "
        "the parents' weights are too large for their dtype"
    )


def usable_operators(mix: Mapping[str, float], parents: int) -> dict[str, Operator]:
    """The operators of the mix, by name, that can be drawn with so many parents. Raises UserError:
    an unknown operator, a weight that is negative or not finite, or none can be drawn."""
    for name, weight in mix.items():
        if not 0 <= weight < math.inf:
            raise UserError(f"the weight of {name} is {weight}; it must be 0 or more")
    candidates = {name: get_operator(name) for name, weight in mix.items() if weight > 0}
    usable = {name: op for name, op in candidates.items() if op.parents <= parents}
    if not usable:
        reason = f"{parents} parents are too few" if candidates else "all weights are 0"
        names = ", ".join(candidates or mix) or "them"
        raise UserError(
            f"evolution.operators: none of {names} can be used: {reason}; weigh a mutation, or set "
            "evolution.interval=0"
        )
    return usable


def options_of(chosen: Operator, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The options of this operator or sequence, from `options` by operator."""
    parts = {
        f"{step.name}.{key}": value
        for step in chosen.steps
        for key, value in options.get(step.name, {}).items()
    }
    return {**parts, **options.get(chosen.name, {})}


def step_sizes(chosen: Operator) -> dict[str, str]:
    """Its step sizes: `full_gaussian.eps` -> the option's name in `chosen`."""
    sizes = {
        f"{s.name}.{s.step_size}": s.step_size for s in chosen.steps or [chosen] if s.step_size
    }
    return {key: key for key in sizes} if chosen.steps else sizes


def dry_run(mix: Mapping[str, float], options: Mapping[str, Mapping[str, Any]], rank: int) -> None:
    """Makes a child of tiny parents of that rank by every operator of the mix. Raises UserError for
    anything that would stop a run at its first replacement: unknown names, options out of range,
    options that contradict each other or the rank."""
    for name in (*mix, *options):
        chosen = get_operator(name)
        resolved = chosen.resolve(options_of(chosen, options))
        if not mix.get(name):
            continue
        random = torch.Generator().manual_seed(0)
        pairs = [
            [torch.randn(shape, generator=random) for shape in ((rank, rank + 1), (rank + 1, rank))]
            for _ in range(chosen.parents)
        ]
        parents = [Adapter(LoraSpec(rank, rank), {"layer": Factors(*pair)}) for pair in pairs]
        chosen(parents, random, **resolved)
