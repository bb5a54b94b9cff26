"""A run's replacement step from its configuration, and what it could not work with: refused before
the run, local or inside AZR."""

from __future__ import annotations

import math

from azr_population.conf.schema import EvolutionConfig
from azr_population.errors import UserError
from azr_population.evolution.registry import get_operator, rehearse
from azr_population.evolution.replacement import PopulationBasedTraining


def replacement_step(evolution: EvolutionConfig) -> PopulationBasedTraining:
    """The replacement step that the `evolution` group describes.

    Raises:
        UserError: as `PopulationBasedTraining` does.
    """
    return PopulationBasedTraining(
        fraction=evolution.fraction,
        elites=evolution.elites,
        ready=evolution.ready,
        fitness=evolution.fitness,
        selection=evolution.selection,
        replacement=evolution.replacement,
        selection_options=evolution.selection_options,
        widen=evolution.widen,
    )


def check_evolution(
    evolution: EvolutionConfig, smallest: int, rank: int, node: str = "evolution"
) -> None:
    """Checks all of the `evolution` group.

    Args:
        smallest: members in the smaller of both sub-populations; those of one are never replaced.
        rank: of the members' adapters.
        node: where the group is in the configuration, for messages.

    Raises:
        UserError: naming the key, the value and what would be accepted.
    """
    step = replacement_step(evolution)
    if evolution.interval < 0:
        raise UserError(f"{node}.interval={evolution.interval} is too small; the least is 0")
    if not 0 < evolution.adaptive_tau < math.inf:
        raise UserError(f"{node}.adaptive_tau={evolution.adaptive_tau} must be above 0")
    weights = evolution.operators
    for name, weight in weights.items():
        get_operator(name)
        if not 0 <= weight < math.inf:
            raise UserError(f"{node}.operators.{name}={weight} must be a number, at least 0")
    if evolution.interval == 0 or smallest < 2:
        rehearse(dict.fromkeys(weights, 0.0), evolution.options, rank)
        return
    used = [get_operator(name) for name, weight in weights.items() if weight > 0]
    if not used:
        raise UserError(f"{node}.operators are all 0; weigh one, or set {node}.interval=0")
    survivors = max(smallest - max(1, step.replaced(smallest)), evolution.elites)
    if all(operator.parents > survivors for operator in used):
        raise UserError(
            f"{node}.operators: all of {', '.join(operator.name for operator in used)} need two "
            f"parents, but of {smallest} members only {survivors} survive; weigh a mutation"
        )
    try:
        rehearse(weights, evolution.options, rank)
    except UserError as error:
        raise UserError(f"{node}: {error}") from error
