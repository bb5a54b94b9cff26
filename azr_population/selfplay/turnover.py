"""Rating the matches of a step and replacing members: the same in local runs and inside AZR."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from azr_population.evolution.registry import get_operator
from azr_population.evolution.replacement import PopulationBasedTraining, Replacement
from azr_population.matchmaking import Match, Matchmaker
from azr_population.members import LineageRecord, Rating, Roster, outcome_of
from azr_population.selfplay import record
from azr_population.selfplay.rows import Row
from azr_population.selfplay.streams import Streams


def rate_matches(
    step: int, matches: Sequence[Match], rows: Sequence[Row], matchmaker: Matchmaker
) -> list[dict[str, Any]]:
    """Rates the members by their rows, match after match; the lines of `matches.jsonl`.

    The single agent plays itself, which says nothing about its strength: it is not rated.
    """
    records = []
    for match in matches:
        own = [row for row in rows if row.match is match]
        if not own:
            continue
        before = (copy.copy(match.teacher), copy.copy(match.student))
        odds = matchmaker.odds(match.teacher, match.student)
        if match.teacher is not match.student:
            match.teacher.rating, match.student.rating = matchmaker.ratings.rate_match(
                match.teacher.rating,
                match.student.rating,
                [outcome_of(row.solve_rate) for row in own],
            )
        records.append(record.match_record(step, own, before, odds.p))
    return records


def plan_replacements(
    step: int,
    roster: Roster,
    rewards: Mapping[str, Sequence[float]],
    evolution: PopulationBasedTraining,
    streams: Streams,
) -> list[Replacement]:
    """The replacements of every sub-population that has more than one member."""
    return [
        replacement
        for role, members in roster.sub_populations.items()
        if len(members) > 1
        for replacement in evolution.plan(members, rewards, streams.numpy(f"select {role}", step))
    ]


def give_birth(
    step: int,
    replacement: Replacement,
    operator: str,
    options: dict[str, Any],
    seed: int,
    evolution: PopulationBasedTraining,
    initial: Rating,
) -> LineageRecord:
    """Turns the victim into the child that `operator` made in its slot; returns its lineage.

    The child inherits from the parents that the operator really used.
    """
    child = replacement.victim
    used = replacement.parents[: get_operator(operator).parents]
    child.rating = evolution.inherited_rating([parent.rating for parent in used], initial)
    child.generation += 1
    child.born = step
    return LineageRecord(
        step=step,
        child=child.name,
        generation=child.generation,
        parents=tuple(parent.name for parent in used),
        operator=operator,
        options=options,
        seed=seed,
        mu=child.rating.mu,
        sigma=child.rating.sigma,
        victim_fitness=replacement.victim_fitness,
        parent_fitness=replacement.parent_fitness[: len(used)],
    )
