"""Evolution in a run, the same in both hosts: when members are replaced, what a child inherits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from azr_population.config.schema import EvolutionConfig
from azr_population.method import replacement
from azr_population.method.members import Member, Roster
from azr_population.method.replacement import Replacement
from azr_population.streams import Streams
from azr_population.weights.breeding import Breeding, breed, get_operator

MakeChild = Callable[[Replacement, EvolutionConfig, int], Breeding]
"""(replacement, its operators and options, seed): puts a child in the victim's slot."""


def make_child(
    engine: Any, replacement: Replacement, config: EvolutionConfig, seed: int
) -> Breeding:
    """A `MakeChild` of an engine's members, by its `read` and `write`."""
    parents = [engine.read(parent.slot) for parent in replacement.parents]
    generator = torch.Generator().manual_seed(seed)
    child, breeding = breed(config.operators, parents, generator, config.options)
    engine.write(replacement.victim.slot, child)
    return breeding


_rewards = TypeAdapter(dict[str, list[float]]).validate_python


class Evolution:
    """Replaces members of a run. `config` is the run's `evolution` group."""

    def __init__(self, config: EvolutionConfig, streams: Streams) -> None:
        self.config = config
        self.rewards: dict[str, list[float]] = {}
        """Each member's mean reward per step since the last replacement."""
        self._streams = streams

    def record_rewards(self, rewards: Mapping[str, float | None]) -> None:
        """Records the members' mean rewards of a step for fitness functions that use them."""
        for name, reward in rewards.items():
            if reward is not None:
                self.rewards.setdefault(name, []).append(reward)

    def should_evolve(self, step: int) -> bool:
        """Whether members are replaced at the end of this step."""
        return self.config.interval > 0 and step % self.config.interval == 0

    def replace(self, step: int, roster: Roster, make: MakeChild) -> list[dict[str, Any]]:
        """Replaces the worst members if the interval is over; returns lines of `lineage.jsonl`."""
        if not self.should_evolve(step):
            return []
        replacements, fitness = [], replacement.FITNESS[self.config.fitness]
        for role, members in roster.sub_populations.items():
            if len(members) < 2:
                continue
            generator = self._streams.numpy(f"select {role}", step)
            scores = [fitness(each, self.rewards.get(each.name, ())) for each in members]
            replacements += replacement.choose(self.config, members, scores, generator, step)
        self.rewards = {}
        births = [self._replace(step, each, make) for each in replacements]
        moved = roster.recenter_ratings() if births else 0.0
        return [birth | {"mu": birth["mu"] + moved} for birth in births]

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {"rewards": self.rewards}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`. Raises ValueError: it is damaged."""
        self.rewards = _rewards(state["rewards"])

    def check_rates(self, member: Member) -> None:
        """Raises ValueError: a hyperparameter of the member is not one that evolves, or out of its
        bounds."""
        for name, value in member.hyperparameters.items():
            low, high = self.config.hyperparameters[name].limits  # type: ignore[index]
            if not low <= value <= high:
                raise ValueError(
                    f"{member.name} has {name}={value:g}, outside of {low:g} to {high:g}"
                )

    def _replace(self, step: int, chosen: Replacement, make: MakeChild) -> dict[str, Any]:
        """Turns the victim into the child that `make` puts in its slot; returns its line of
        `lineage.jsonl`. The child inherits only from parents that the operator used."""
        child = chosen.victim
        seed = self._streams.integer(f"breed {child.name}", step)
        first = chosen.parents[0]
        breeding = make(chosen, self.config, seed)
        parents = chosen.parents[: get_operator(breeding.operator).parents]
        ratings = [parent.rating for parent in parents]
        child.rating = replacement.inherited_rating(ratings)
        child.generation += 1
        child.born = step
        child.hyperparameters = {
            name: self._inherited(child, name, first.hyperparameters[name], step)
            for name in child.hyperparameters
        }
        evolved = {"hyperparameters": dict(child.hyperparameters)} if child.hyperparameters else {}
        return {
            "step": step,
            "child": child.name,
            "generation": child.generation,
            "parents": [parent.name for parent in parents],
            "operator": breeding.operator,
            "options": breeding.options,
            **evolved,
            "seed": seed,
            "fitness": {
                "victim": chosen.victim_fitness,
                "parents": list(chosen.parent_fitness[: len(parents)]),
            },
            "mu": child.rating.mu,
            "sigma": child.rating.sigma,
        }

    def draw_hyperparameters(self, founder: Member) -> None:
        """Draws the founder's values of the hyperparameters that evolve."""
        for name, config in self.config.hyperparameters.items():
            if founder.role.value in config.roles:
                generator = self._streams.numpy(f"{name} {founder.name}")
                founder.hyperparameters[name] = log_uniform(config.init, generator)

    def _inherited(self, child: Member, name: str, value: float, step: int) -> float:
        """A child's hyperparameter; `value` is its first parent's."""
        config = self.config.hyperparameters[name]  # type: ignore[index]
        if not config.inherit:
            return child.hyperparameters[name]
        generator = self._streams.numpy(f"{name} {child.name}", step)
        if generator.random() < config.resample:
            return log_uniform(config.init, generator)
        low, high = config.limits
        return min(
            max(low, value * config.perturb[int(generator.integers(len(config.perturb)))]), high
        )


def log_uniform(bounds: Sequence[float], generator: np.random.Generator) -> float:
    """A log-uniform number between two positive bounds."""
    low, high = map(math.log, bounds)
    return math.exp(generator.uniform(low, high))
