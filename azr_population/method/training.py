"""What members train on: who is credited for which row, and by how much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from azr_population.config.schema import MembersConfig, PopulationConfig
from azr_population.engines.engine import Completion, Sample
from azr_population.engines.text import TextEngine
from azr_population.method.advantages import ADVANTAGES, BASELINES
from azr_population.method.population import Population
from azr_population.method.rows import Answer, Practice, Row, matches_of
from azr_population.method.shares import shares, solving_rows


class TrainingRow(NamedTuple):
    """A completion that its writer trains on; `value` is its reward, or what stands for it."""

    slot: int
    phase: str
    """`propose` or `solve`: TRR++ has a baseline for each."""
    type: str
    completion: Completion
    value: float
    of: Row | Answer | Practice | None = None
    """Where its advantage is noted."""


def proposals(rows: Iterable[Row]) -> list[TrainingRow]:
    """Teachers train on all their proposals."""
    return [
        TrainingRow(row.match.teacher.slot, "propose", row.type, row.completion, row.reward, row)
        for row in rows
    ]


def attempts(
    rows: Sequence[Row], config: PopulationConfig, generator: np.random.Generator
) -> list[TrainingRow]:
    """Students train on `config.rows` attempts, their share of each match taken evenly over the
    task types: first one attempt of every task in random order, then a second of each, and so on,
    because different tasks teach more than repeated ones."""
    baseline = BASELINES.find(config.solver_baseline).function
    matches = matches_of(rows)
    played = Counter(match.student.name for match in matches)
    met: Counter[str] = Counter()
    drawn: list[TrainingRow] = []
    for match in matches:
        student = match.student
        share = shares(solving_rows(config.rows, student.role), played[student.name])
        count = share[met[student.name]]
        met[student.name] += 1
        answered = [row for row in rows if row.match is match and row.answers]
        worth = {id(row): baseline([answer.reward for answer in row.answers]) for row in answered}
        answered = [row for row in answered if worth[id(row)] is not None]
        for row, attempt in choose_attempts(answered, count, generator):
            value, answer = (worth[id(row)] or ())[attempt], row.answers[attempt]
            drawn.append(
                TrainingRow(student.slot, "solve", row.type, answer.completion, value, answer)
            )
    return drawn


def choose_attempts(
    rows: Sequence[Row], count: int, generator: np.random.Generator
) -> list[tuple[Row, int]]:
    """Up to `count` attempts at these rows' tasks, by number; see `attempts`."""
    by_type: dict[str, list[Row]] = {}
    for row in rows:
        by_type.setdefault(row.type, []).append(row)
    queues: list[list[tuple[Row, int]]] = []
    for of_type in by_type.values():
        order = [of_type[int(i)] for i in generator.permutation(len(of_type))]
        rounds = max(len(row.answers) for row in order)
        queues.append([(row, k) for k in range(rounds) for row in order if k < len(row.answers)])
    chosen: list[tuple[Row, int]] = []
    while len(chosen) < count and any(queues):
        for queue in queues:
            if queue and len(chosen) < count:
                chosen.append(queue.pop(0))
    return chosen


def advantages(
    rows: Sequence[TrainingRow], config: MembersConfig, by_token: bool = False
) -> list[float | None]:
    """Values normalised over (member, phase, task type) by `population.advantage` (TRR++); None for
    what teaches nothing.

    They are also noted on what the rows are `of`. `by_token` weighs a row by its tokens, as veRL
    does.
    """
    values = ADVANTAGES.find(config.advantage).function(
        [row.value for row in rows],
        [(row.slot, row.phase, row.type) for row in rows],
        [len(row.completion.token_ids) for row in rows] if by_token else None,
    )
    for row, value in zip(rows, values, strict=True):
        if row.of is not None:
            row.of.advantage = value
    return values


def samples(rows: Sequence[TrainingRow], config: MembersConfig) -> dict[int, list[Sample]]:
    """Each member's rows with their advantages, by slot; rows that teach nothing are left out."""
    kept: dict[int, list[Sample]] = {}
    for row, value in zip(rows, advantages(rows, config), strict=True):
        of_member = kept.setdefault(row.slot, [])
        if value is not None:
            of_member.append(Sample(row.completion, value))
    return kept


def advantage(rows: Sequence[Row], population: Population) -> dict[int, list[Sample]]:
    """What each member learns from in a local step, by slot. Past opponents learn nothing."""
    generator = population.streams.numpy("attempts", population.step)
    matched = [row for row in rows if row.match in population.matches]
    drawn = attempts(matched, population.config, generator)
    return samples([*proposals(rows), *drawn], population.config)


def update(
    engine: TextEngine, credited: Mapping[int, list[Sample]], rates: Mapping[int, float]
) -> dict[int, dict[str, float]]:
    """Trains every member; what the engine says of each, by slot, and how many `rows` it had."""
    figures = engine.update(credited, rates)
    return {slot: {**own, "rows": len(credited[slot])} for slot, own in figures.items()}
