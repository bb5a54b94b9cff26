"""Training samples: which completions a member trains on, and their advantages by TRR++
(task-relative REINFORCE++; AZR, section 3.3.5)."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from azr_population.config.schema import PopulationConfig
from azr_population.engines.engine import Hyperparameters, TrainingSample
from azr_population.engines.text import TextEngine
from azr_population.method.matchmaking import split_evenly
from azr_population.method.population import Population
from azr_population.method.proposals import Attempt, Proposal, Replay, matches_of

_FLAT = 1e-6


def task_relative(
    rewards: Sequence[float],
    groups: Sequence[Hashable],
    tokens: Sequence[int] | None = None,
) -> list[float | None]:
    """Rewards normalised within their group: (r - mean) / standard deviation.

    A group is (member, role, task type), so every member has a separate baseline for each kind of
    completion. None marks those of a group whose rewards are equal: they teach nothing, and
    dividing by a tiny deviation would only amplify noise.

    With `tokens`, each is weighted by its number of tokens and the sample standard deviation
    is used: veRL's REINFORCE++ (`masked_whiten` of the returns), as in stock AZR.
    """
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    advantages: list[float | None] = [None] * len(rewards)
    for indices in members.values():
        values = np.array([rewards[index] for index in indices])
        if np.ptp(values) <= _FLAT:
            continue
        if tokens is None:
            scaled = (values - values.mean()) / values.std()
        else:
            counts = np.array([tokens[index] for index in indices])
            if counts.sum() < 2:
                continue
            centred = values - np.average(values, weights=counts)
            variance = (counts * centred**2).sum() / (counts.sum() - 1)
            scaled = centred / np.sqrt(variance + 1e-8)
        for index, value in zip(indices, scaled, strict=True):
            advantages[index] = float(value)
    return advantages


def attempt_values(rewards: Sequence[float], compared_with: str) -> list[float | None]:
    """Values of the attempts at one task, by `population.student_advantage`: None marks one that
    teaches nothing.

    - `batch`: the reward, which `task_relative` compares with all attempts at that type of task.
    - `rloo`: the reward minus the mean of the others (RLOO, Ahmadian et al. 2024, arXiv
      2402.14740), so that a task's difficulty does not count; None for all if all are equal.
    - `positive_only`: 1 for a right answer that beats another attempt, else None. This is the
      advantage itself: normalising would push down half of the right answers. A wrong answer is
      never reinforced, even if it beats unparsable ones. Ours: expert iteration by the step.
    """
    if compared_with == "batch":
        return list(rewards)
    if len(set(rewards)) < 2:
        return [None] * len(rewards)
    total = sum(rewards)
    values = [reward - (total - reward) / (len(rewards) - 1) for reward in rewards]
    if compared_with == "rloo":
        return list(values)
    return [
        1.0 if reward > 0 and value > _FLAT else None
        for reward, value in zip(rewards, values, strict=True)
    ]


class ScoredCompletion(NamedTuple):
    """A completion that its writer trains on; `value` is its reward, or its baseline's value."""

    sample: Proposal | Attempt
    """Its advantage is stored there."""
    value: float
    is_advantage: bool = False
    """Whether `value` already is the advantage."""


def scored_proposals(proposals: Iterable[Proposal]) -> list[ScoredCompletion]:
    """Teachers train on all their proposals that were judged."""
    return [ScoredCompletion(each, each.reward) for each in proposals if each.judged]


def scored_attempts(
    proposals: Sequence[Proposal],
    replays: Sequence[Replay],
    config: PopulationConfig,
    generator: np.random.Generator,
) -> list[ScoredCompletion]:
    """Students train on `config.batch_size` attempts: first those at replayed tasks that teach
    something, up to `replay_fraction`; the rest are split evenly over matches and task types."""
    matches = matches_of(proposals)
    played = Counter(match.student.name for match in matches)
    fresh_counts: dict[str, list[int]] = {}
    chosen: list[ScoredCompletion] = []
    for student in {match.student.name: match.student for match in matches}.values():
        repeated = [replay for replay in replays if replay.student is student and replay.attempts]
        from_buffer = attempts_that_teach(repeated, config.replay_batch_size, config, generator)
        fresh = config.attempt_batch_size - len(from_buffer)
        fresh_counts[student.name] = split_evenly(fresh, played[student.name])
        chosen += from_buffer
    for match in matches:
        attempted = [
            proposal for proposal in proposals if proposal.match is match and proposal.attempts
        ]
        chosen += attempts_that_teach(
            attempted, fresh_counts[match.student.name].pop(0), config, generator
        )
    return chosen


def attempts_that_teach(
    problems: Sequence[Proposal | Replay],
    count: int,
    config: PopulationConfig,
    generator: np.random.Generator,
) -> list[ScoredCompletion]:
    """Up to `count` of the attempts at these tasks that teach something."""
    compared_with = config.student_advantage
    candidates = []
    for problem in problems:
        values = attempt_values([attempt.reward for attempt in problem.attempts], compared_with)
        candidates.append(
            [
                ScoredCompletion(attempt, value, is_advantage=compared_with == "positive_only")
                for attempt, value in zip(problem.attempts, values, strict=True)
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
    for attempts_at_task in filter(None, candidates):
        by_type.setdefault(attempts_at_task[0].sample.type, []).append(attempts_at_task)
    queues = []
    for tasks in by_type.values():
        order = generator.permutation(len(tasks))
        queues.append(_in_turn([tasks[int(i)] for i in order]))
    return _in_turn(queues)[:count]


def _in_turn(queues: Sequence[Sequence[ScoredCompletion]]) -> list[ScoredCompletion]:
    """The first of each queue, then the second of each, and so on."""
    return [each for turn in zip_longest(*queues) for each in turn if each is not None]


def set_advantages(
    scored: Sequence[ScoredCompletion], by_token: bool = False
) -> list[float | None]:
    """Advantages: values normalised over (member, phase, task type) (TRR++); None for one that
    teaches nothing.

    They are also stored in each one's `sample`. `by_token` weights each by its tokens, as veRL
    does.
    """
    normalised = [each for each in scored if not each.is_advantage]
    groups = [
        (
            each.sample.completion.slot,
            "propose" if isinstance(each.sample, Proposal) else "solve",
            each.sample.type,
        )
        for each in normalised
    ]
    normalised_values = iter(
        task_relative(
            [each.value for each in normalised],
            groups,
            [len(each.sample.completion.token_ids) for each in normalised] if by_token else None,
        )
    )
    values = [each.value if each.is_advantage else next(normalised_values) for each in scored]
    for each, value in zip(scored, values, strict=True):
        each.sample.advantage = value
    return values


def training_samples(
    scored: Sequence[ScoredCompletion], hold_all: bool = False
) -> dict[int, list[TrainingSample]]:
    """Each member's training samples, by slot. Rows that teach nothing are left out, unless
    `hold_all`: the KL loss applies to all."""
    chosen: dict[int, list[TrainingSample]] = {}
    for each, value in zip(scored, set_advantages(scored), strict=True):
        completion = each.sample.completion
        samples_of_slot = chosen.setdefault(completion.slot, [])
        if value is not None or hold_all:
            samples_of_slot.append(TrainingSample(completion, value or 0.0))
    return chosen


def advantage(
    proposals: Sequence[Proposal], population: Population, replays: Sequence[Replay] = ()
) -> dict[int, list[TrainingSample]]:
    """Each member's training samples in a local step, by slot."""
    generator = population.streams.numpy("attempts", population.step)
    trained = scored_attempts(proposals, replays, population.config, generator)
    return training_samples(
        [*scored_proposals(proposals), *trained], population.config.kl_loss_coef > 0
    )


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
