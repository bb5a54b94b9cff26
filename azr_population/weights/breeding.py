"""Breeding a child: draws an operator from a mix, and applies it to the parents."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from azr_population.errors import UserError
from azr_population.weights import operators as _registered  # noqa: F401
from azr_population.weights.adapter import Adapter, Factors, LoraSpec, refuse_unsound
from azr_population.weights.operator import OPERATORS, Operator

ATTEMPTS = 8
"""Attempts at a sound child before the step fails."""


class Breeding(NamedTuple):
    """The making of a child: the operator (or `svd_subspace+full_gaussian`) and its options."""

    operator: str
    options: dict[str, Any]


def all_operators() -> list[Operator]:
    """All operators, in the order of their codes: mutations, crossovers, those without."""
    return sorted(OPERATORS.values(), key=lambda operator: operator.code or "~")


def get_operator(name: str) -> Operator:
    """The operator, or crossover and mutation joined by `+`, of that name or path. Raises
    UserError: unknown (the message lists the valid names), or no crossover and then a mutation."""
    names = [part.strip() for part in str(name).split("+")]
    steps = tuple(replace(OPERATORS.find(step), name=step) for step in names)
    if len(steps) == 1:
        return steps[0]
    if [step.parents for step in steps] != [2, 1]:
        raise UserError(f"{name} is neither one operator nor a crossover and then a mutation")

    def in_turn(
        parents: Sequence[Adapter], generator: torch.Generator, **options: float | None
    ) -> Adapter:
        """The mutation takes the crossover's child."""
        for step in steps:
            given = {key: options[f"{step.name}.{key}"] for key in step.defaults}
            parents = [step(parents, generator, **given)]
        return parents[0]

    defaults = {f"{step.name}.{key}": step.defaults[key] for step in steps for key in step.defaults}
    ranges = {f"{step.name}.{key}": step.ranges[key] for step in steps for key in step.ranges}
    return Operator(name, "", steps[0].parents, defaults, ranges, in_turn, steps=steps)


def breed(
    mix: Mapping[str, float],
    parents: Sequence[Adapter],
    generator: torch.Generator,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> tuple[Adapter, Breeding]:
    """One child by an operator drawn from the mix, and how it was made.

    `mix` has the weights of operators; those that need more parents than given are left out.
    `parents`: the better one first. `options` are by operator; they also apply inside
    `dare+full_gaussian` unless that has its own: {"dare+full_gaussian": {"dare.p": 0.5}}. A child
    with a value that no training leaves is drawn again.

    Raises UserError: an unknown operator or option, nothing to draw, parents that do not fit, or
    `ATTEMPTS` children in a row with values that are not finite or too large.
    """
    usable = usable_operators(mix, len(parents))
    for _ in range(ATTEMPTS):
        weights = torch.tensor([mix[name] for name in usable], dtype=torch.float64)
        index = torch.multinomial(weights.to(generator.device), 1, generator=generator)
        name = list(usable)[int(index)]
        chosen = usable[name]
        resolved = chosen.resolve(operator_options(chosen, options or {}))
        child = chosen(parents, generator, **resolved)
        try:
            refuse_unsound(child, f"{name}: its child")
        except UserError as error:
            fault = error
            continue
        used = {key: value for key, value in resolved.items() if value is not None}
        return child, Breeding(name, used)
    raise UserError(
        f"{ATTEMPTS} children in a row cannot be trained; {fault}; weigh another operator, or "
        "lower the learning rates if the parents have grown too large"
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


def operator_options(chosen: Operator, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The options of this operator or sequence, from `options` by operator."""
    parts = {
        f"{step.name}.{key}": value
        for step in chosen.steps
        for key, value in options.get(step.name, {}).items()
    }
    return {**parts, **options.get(chosen.name, {})}


def dry_run(mix: Mapping[str, float], options: Mapping[str, Mapping[str, Any]], rank: int) -> None:
    """Makes a child of tiny parents of that rank by every operator of the mix. Raises UserError for
    anything that would stop a run at its first replacement: unknown names, options out of range,
    options that contradict each other or the rank."""
    for name in (*mix, *options):
        chosen = get_operator(name)
        resolved = chosen.resolve(operator_options(chosen, options))
        if not mix.get(name):
            continue
        random = torch.Generator().manual_seed(0)
        pairs = [
            [torch.randn(shape, generator=random) for shape in ((rank, rank + 1), (rank + 1, rank))]
            for _ in range(chosen.parents)
        ]
        parents = [Adapter(LoraSpec(rank, rank), {"layer": Factors(*pair)}) for pair in pairs]
        chosen(parents, random, **resolved)
