"""Rating the matches of a step and replacing members: the same in local runs and inside AZR."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from azr_population.config.schema import EvolutionConfig
from azr_population.method import record
from azr_population.method.evolution.credit import OperatorCredit
from azr_population.method.evolution.replacement import PopulationBasedTraining, Replacement
from azr_population.method.matchmaking import Match, Matchmaker
from azr_population.method.members import LineageRecord, Member, Rating, Roster, outcome_of
from azr_population.method.proposals import Proposal
from azr_population.runs.streams import Streams
from azr_population.weights.breeding import Breeding, get_operator

MakeChild = Callable[[Replacement, dict[str, Any], int], Breeding]
"""(replacement, keywords of `breed`, seed): puts a child in the victim's slot."""


class Evolution:
    """The replacement of members in a run: when, who, by what; and the operators' credit.

    `settings` are the run's; a member starts with the rating `initial`. Raises UserError for an
    unknown name or option.
    """

    def __init__(self, settings: EvolutionConfig, streams: Streams, initial: Rating) -> None:
        self.settings = settings
        self.rewards: dict[str, list[float]] = {}
        """Each member's mean reward per step since it or its rivals were last replaced."""
        self.credit = OperatorCredit()
        self._streams = streams
        self._initial = initial
        self._training = PopulationBasedTraining(settings)

    def record_rewards(self, rewards: Mapping[str, float | None]) -> None:
        """Notes the members' mean rewards of a step, for fitness functions that use them."""
        for name, reward in rewards.items():
            if reward is not None:
                self.rewards.setdefault(name, []).append(reward)

    def should_evolve(self, step: int) -> bool:
        """Whether members are replaced at the end of this step."""
        return self.settings.interval > 0 and step % self.settings.interval == 0

    def replace(self, step: int, roster: Roster, make: MakeChild) -> list[dict[str, Any]]:
        """At its interval, replaces the worst members; the lines of `lineage.jsonl`."""
        if not self.should_evolve(step):
            return []
        plans = []
        for role, members in roster.sub_populations.items():
            if len(members) < 2:
                continue
            fitness = self._training.fitness_of(members, self.rewards)
            names = (member.name for member in members)
            self.credit.score_children(
                step, dict(zip(names, fitness, strict=True)), self.settings.grace_period
            )
            generator = self._streams.numpy(f"select {role}", step)
            plans += self._training.plan(members, self.rewards, generator, step)
        self.rewards = {}
        births = [self._replace(step, plan, make) for plan in plans]
        moved = roster.recenter_ratings(self._initial.mu) if births else 0.0
        return [replace(birth, mu=birth.mu + moved).to_json() for birth in births]

    def metrics(self, step: int, births: int) -> dict[str, float]:
        """What a step adds to its line of `metrics.jsonl`: how many members were replaced,
        and at a replacement step the operators' credit."""
        metrics = {"evolution/replaced": float(births)}
        for operator, values in (
            self.credit.summary(step).items() if self.should_evolve(step) else ()
        ):
            metrics |= record.flatten(f"evolution/{operator}", values)
        return metrics

    def state(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {"rewards": self.rewards, "credit": self.credit.to_json()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`; a checkpoint from before there was credit starts it anew."""
        self.rewards = {name: list(map(float, own)) for name, own in state["rewards"].items()}
        self.credit = OperatorCredit.from_json(state.get("credit", []))

    def _replace(self, step: int, replacement: Replacement, make: MakeChild) -> LineageRecord:
        """Turns the victim into the child that `make` puts in its slot.

        The child inherits from the parents that the operator really used.
        """
        child = replacement.victim
        seed = self._streams.integer(f"breed {child.name}", step)
        made = make(replacement, self._recipe(replacement.parents[0]), seed)
        used = replacement.parents[: get_operator(made.operator).parents]
        child.rating = self._training.inherited_rating(
            [parent.rating for parent in used], self._initial
        )
        child.generation += 1
        child.born = step
        child.step_sizes = {**used[0].step_sizes, **made.step_sizes}
        child.hyperparameters = {
            name: self._inherited(child, name, used[0].hyperparameters[name], step)
            for name in child.hyperparameters
        }
        self.credit.birth(step, made.operator, child.name, used[0].name, replacement.victim_fitness)
        return LineageRecord(
            step=step,
            child=child.name,
            generation=child.generation,
            parents=tuple(parent.name for parent in used),
            operator=made.operator,
            options=made.options,
            step_sizes=made.step_sizes,
            hyperparameters=dict(child.hyperparameters),
            seed=seed,
            mu=child.rating.mu,
            sigma=child.rating.sigma,
            victim_fitness=replacement.victim_fitness,
            parent_fitness=replacement.parent_fitness[: len(used)],
        )

    def draw_hyperparameters(self, founder: Member) -> None:
        """Gives a founder its own of what evolves."""
        for name, how in self.settings.hyperparameters.items():
            if founder.role.value in how.roles:
                generator = self._streams.numpy(f"{name} {founder.name}")
                founder.hyperparameters[name] = log_uniform(how.init, generator)

    def _inherited(self, child: Member, name: str, value: float, step: int) -> float:
        """A child's hyperparameter where its first parent's is `value`."""
        how = self.settings.hyperparameters[name]  # type: ignore[index]
        if not how.inherit:
            return child.hyperparameters[name]
        generator = self._streams.numpy(f"{name} {child.name}", step)
        if generator.random() < how.resample:
            return log_uniform(how.init, generator)
        return value * how.perturb[int(generator.integers(len(how.perturb)))]

    def _recipe(self, parent: Member) -> dict[str, Any]:
        """The keywords of `breed` for a child whose first parent is `parent`, as plain data."""
        settings = self.settings
        return {
            "mix": dict(settings.operators),
            "options": {name: dict(taken) for name, taken in settings.options.items()},
            "adapt": settings.adaptive_tau if settings.adaptive else 0.0,
            "inherited": dict(parent.step_sizes),
        }


def log_uniform(bounds: Sequence[float], generator: np.random.Generator) -> float:
    """A number between two positive ones, whose logarithm is uniform."""
    low, high = map(math.log, bounds)
    return math.exp(generator.uniform(low, high))


def rate_matches(
    step: int, matches: Sequence[Match], rows: Sequence[Proposal], matchmaker: Matchmaker
) -> list[dict[str, Any]]:
    """Rates the members by their rows, match after match; the lines of `matches.jsonl`.

    The ratings are recentred afterwards (`Roster.recenter_ratings`), which no match shows.
    The single agent plays itself, which says nothing about its strength: it is not rated.
    """
    records = []
    for match in matches:
        match_rows = [row for row in rows if row.match is match]
        if not match_rows:
            continue
        before = (copy.copy(match.teacher), copy.copy(match.student))
        odds = matchmaker.odds(match.teacher, match.student)
        if match.teacher is not match.student:
            match.teacher.rating, match.student.rating = matchmaker.ratings.rate_match(
                match.teacher.rating,
                match.student.rating,
                [outcome_of(row.solve_rate) for row in match_rows],
            )
        records.append(record.match_record(step, match_rows, before, odds.p))
    return records
