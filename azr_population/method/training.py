"""Training samples: which rows a member trains on, and their advantages."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from azr_population.config.schema import PopulationConfig
from azr_population.engines.engine import Hyperparameters, TrainingSample
from azr_population.engines.text import TextEngine
from azr_population.method.advantages import BASELINES, RAW, task_relative
from azr_population.method.matchmaking import split_evenly
from azr_population.method.population import Population
from azr_population.method.proposals import Attempt, Proposal, Replay, matches_of


class ScoredCompletion(NamedTuple):
    """A completion that its writer trains on; `value` is its reward, or its baseline's value."""

    of: Proposal | Attempt
    """Its advantage is stored there."""
    value: float
    raw: bool = False
    """Whether `value` already is the advantage."""


def proposals(rows: Iterable[Proposal]) -> list[ScoredCompletion]:
    """Teachers train on all their proposals."""
    return [ScoredCompletion(row, row.reward) for row in rows]


def attempts(
    rows: Sequence[Proposal],
    replays: Sequence[Replay],
    config: PopulationConfig,
    generator: np.random.Generator,
) -> list[ScoredCompletion]:
    """Students train on `config.batch_size` attempts: first those at replayed tasks that teach
    something, up to `replay_fraction`; the rest are split evenly over matches and task types."""
    matches = matches_of(rows)
    played = Counter(match.student.name for match in matches)
    rest: dict[str, list[int]] = {}
    chosen: list[ScoredCompletion] = []
    for student in {match.student.name: match.student for match in matches}.values():
        repeated = [replay for replay in replays if replay.student is student and replay.attempts]
        from_buffer = _attempts(repeated, config.replay_batch_size, config, generator)
        fresh = config.attempt_batch_size - len(from_buffer)
        rest[student.name] = split_evenly(fresh, played[student.name])
        chosen += from_buffer
    for match in matches:
        attempted = [row for row in rows if row.match is match and row.attempts]
        chosen += _attempts(attempted, rest[match.student.name].pop(0), config, generator)
    return chosen


def _attempts(
    rows: Sequence[Proposal | Replay],
    count: int,
    config: PopulationConfig,
    generator: np.random.Generator,
) -> list[ScoredCompletion]:
    """Up to `count` of the attempts at these tasks that teach something."""
    baseline = BASELINES.find(config.student_advantage)
    raw = config.student_advantage in RAW
    candidates = []
    for row in rows:
        rewards = [attempt.reward for attempt in row.attempts]
        values = baseline(rewards) or [None] * len(rewards)
        candidates.append(
            [
                ScoredCompletion(attempt, value, raw)
                for attempt, value in zip(row.attempts, values, strict=True)
                if value is not None
            ]
        )
    return choose_attempts(candidates, count, generator)


def choose_attempts(
    candidates: Sequence[Sequence[ScoredCompletion]], count: int, generator: np.random.Generator
) -> list[ScoredCompletion]:
    """Up to `count` of the candidates, which are listed by task. Task types take turns. Within a
    type: first one attempt at each task in random order, then a second at each, and so on, because
    different tasks teach more than repeated ones."""
    by_type: dict[str, list[Sequence[ScoredCompletion]]] = {}
    for of_task in filter(None, candidates):
        by_type.setdefault(of_task[0].of.type, []).append(of_task)
    queues = []
    for tasks in by_type.values():
        order = generator.permutation(len(tasks))
        queues.append(_in_turn([tasks[int(i)] for i in order]))
    return _in_turn(queues)[:count]


def _in_turn(queues: Sequence[Sequence[ScoredCompletion]]) -> list[ScoredCompletion]:
    """The first of each queue, then the second of each, and so on."""
    return [row for turn in zip_longest(*queues) for row in turn if row is not None]


def advantages(rows: Sequence[ScoredCompletion], by_token: bool = False) -> list[float | None]:
    """Advantages: values normalised over (member, phase, task type) (TRR++); None for a row that
    teaches nothing.

    They are also stored in the row's `of`. `by_token` weights a row by its tokens, as veRL does.
    """
    normalised = [row for row in rows if not row.raw]
    groups = [
        (
            row.of.completion.slot,
            "propose" if isinstance(row.of, Proposal) else "solve",
            row.of.type,
        )
        for row in normalised
    ]
    normalised_values = iter(
        task_relative(
            [row.value for row in normalised],
            groups,
            [len(row.of.completion.token_ids) for row in normalised] if by_token else None,
        )
    )
    values = [row.value if row.raw else next(normalised_values) for row in rows]
    for row, value in zip(rows, values, strict=True):
        row.of.advantage = value
    return values


def samples(
    rows: Sequence[ScoredCompletion], hold_all: bool = False
) -> dict[int, list[TrainingSample]]:
    """Each member's training samples, by slot. Rows that teach nothing are left out, unless
    `hold_all`: the KL loss applies to all rows."""
    chosen: dict[int, list[TrainingSample]] = {}
    for row, value in zip(rows, advantages(rows), strict=True):
        completion = row.of.completion
        samples_of_slot = chosen.setdefault(completion.slot, [])
        if value is not None or hold_all:
            samples_of_slot.append(TrainingSample(completion, value or 0.0))
    return chosen


def advantage(
    rows: Sequence[Proposal], population: Population, replays: Sequence[Replay] = ()
) -> dict[int, list[TrainingSample]]:
    """Each member's training samples in a local step, by slot."""
    generator = population.streams.numpy("attempts", population.step)
    trained = attempts(rows, replays, population.config, generator)
    return samples([*proposals(rows), *trained], population.config.kl_loss_coef > 0)


def update(
    engine: TextEngine,
    credited: Mapping[int, list[TrainingSample]],
    hyperparameters: Mapping[int, Hyperparameters],
) -> dict[int, dict[str, float]]:
    """Trains every member; returns the engine's metrics by slot, with the number of `rows`."""
    updates = engine.update(credited, hyperparameters)
    for slot, samples in credited.items():
        updates[slot]["rows"] = len(samples)
    return updates
