"""Evolution in a run, the same in both hosts: when members are replaced, what a child inherits, and
how well the children of each operator do.

In adaptive operator selection an operator's credit is the gain of a child over its parents (Fialho
et al. 2008, "Extreme value based adaptive operator selection"). Here the child first trains for an
interval, so it is scored at the next replacement step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from azr_population.config.schema import EvolutionConfig
from azr_population.method import replacement
from azr_population.method.members import Member, Roster
from azr_population.method.record import flatten
from azr_population.method.replacement import Replacement
from azr_population.runs.records import mean
from azr_population.runs.streams import Streams
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


@dataclass
class ChildRecord:
    """The history of one child. Its scores are None until it is scored, or if they are unknown.

    `judged` is the first replacement step at which it could be replaced, `died` the step at which
    it was replaced. `rank` is the share of the other members that it beat then (ties count half).
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


_rewards = TypeAdapter(dict[str, list[float]]).validate_python
_children = TypeAdapter(list[ChildRecord]).validate_python


class Evolution:
    """Replaces members of a run and keeps the operators' credit. `config` is the run's `evolution`
    group."""

    def __init__(self, config: EvolutionConfig, streams: Streams) -> None:
        self.config = config
        self.rewards: dict[str, list[float]] = {}
        """Each member's mean reward per step since the last replacement."""
        self.children: list[ChildRecord] = []
        """All births of the run."""
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
        replacements, score = [], replacement.FITNESS.find(self.config.fitness)
        for role, members in roster.sub_populations.items():
            if len(members) < 2:
                continue
            fitness = {
                member.name: score(member, self.rewards.get(member.name, ())) for member in members
            }
            self.score_children(step, fitness)
            generator = self._streams.numpy(f"select {role}", step)
            found = list(fitness.values())
            replacements += replacement.choose(self.config, members, found, generator, step)
        self.rewards = {}
        births = [self._replace(step, each, make) for each in replacements]
        moved = roster.recenter_ratings() if births else 0.0
        return [birth | {"mu": birth["mu"] + moved} for birth in births]

    def score_children(self, step: int, fitness: Mapping[str, float]) -> None:
        """Scores each child at the first replacement step at which it can be replaced.

        `fitness` has all members of this replacement step by name (-inf: unknown), before anyone
        is replaced. Call it before this step's births.
        """
        finite = {name: value for name, value in fitness.items() if math.isfinite(value)}
        for child in self.children:
            young = step - child.born < self.config.grace_period
            if child.judged is not None or young or child.child not in fitness:
                continue
            child.judged, child.fitness = step, finite.get(child.child)
            if child.fitness is None:
                continue
            others = [value for name, value in finite.items() if name != child.child]
            child.rank = mean((v < child.fitness) + 0.5 * (v == child.fitness) for v in others)
            if child.victim_fitness is not None:
                child.gain_over_victim = child.fitness - child.victim_fitness
            parent_lives = all(
                c.child != child.parent or c.born <= child.born for c in self.children
            )
            if parent_lives and child.parent in finite:
                child.gain_over_parent = child.fitness - finite[child.parent]

    def record_birth(
        self, step: int, operator: str, child: str, parent: str, victim: float
    ) -> None:
        """Records a new child in the slot of `child`, whose last member had the fitness
        `victim`."""
        for record in self.children:
            if record.child == child and record.died is None:
                record.died = step
        victim_fitness = victim if math.isfinite(victim) else None
        self.children.append(ChildRecord(operator, child, parent, step, victim_fitness))

    def operator_credit(self, step: int) -> dict[str, dict[str, float | None]]:
        """By operator, up to `step`: `evolution/<operator>/...` in `metrics.jsonl` (see
        docs/evolution.md). None: unknown."""
        credits = {}
        for operator in dict.fromkeys(child.operator for child in self.children):
            children = [child for child in self.children if child.operator == operator]
            replaced = sum(child.died is not None for child in children)
            judged = [child for child in children if child.judged is not None]
            credits[operator] = {
                "born": len(children),
                "alive": len(children) - replaced,
                "replaced": replaced,
                "mean_life": mean((child.died or step) - child.born for child in children),
                "judged": len(judged),
                "passed": sum(child.died != child.judged for child in judged),
                "mean_rank": mean(child.rank for child in judged),
                "mean_fitness": mean(child.fitness for child in judged),
                "gain_over_victim": mean(child.gain_over_victim for child in judged),
                "gain_over_parent": mean(child.gain_over_parent for child in judged),
            }
        return credits

    def metrics(self, step: int, births: int) -> dict[str, float]:
        """Metrics of a step: the number of replaced members and, at a replacement step, the
        operators' credit."""
        metrics = {"evolution/replaced": float(births)}
        if self.should_evolve(step):
            for operator, values in self.operator_credit(step).items():
                metrics |= flatten(f"evolution/{operator}", values)
        return metrics

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {"rewards": self.rewards, "credit": [asdict(child) for child in self.children]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`. Raises ValueError: it is damaged."""
        self.rewards = _rewards(state["rewards"])
        self.children = _children(state["credit"])

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
        self.record_birth(step, breeding.operator, child.name, first.name, chosen.victim_fitness)
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
