"""Advantages: TRR++ (task-relative REINFORCE++; AZR, section 3.3.5), and the baselines of attempts
at one task, by name."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from azr_population.registry import Registry

_FLAT = 1e-6

BASELINES: Registry[Callable[[Sequence[float]], Sequence[float | None] | None]] = Registry(
    "population.student_advantage"
)
"""Functions from the rewards of all attempts at one task to their values, which
`task_relative` then normalises, except those of `RAW`. None marks an attempt that teaches
nothing; None in place of the list marks all of them."""

RAW = ("positive_only",)
"""Baselines whose values already are advantages. Normalising them would push down half of the right
answers."""


def task_relative(
    rewards: Sequence[float],
    groups: Sequence[Hashable],
    tokens: Sequence[int] | None = None,
) -> list[float | None]:
    """Rewards normalised within their group: (r - mean) / standard deviation.

    A group is (member, role, task type), so every member has a separate baseline for each kind of
    row. None marks the rows of a group whose rewards are equal: they teach nothing, and dividing
    by a tiny deviation would only amplify noise.

    With `tokens`, each row is weighted by its number of tokens and the sample standard deviation
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


@BASELINES.register("batch", "AZR: compared with all attempts at that type of task")
def batch(rewards: Sequence[float]) -> Sequence[float]:
    """The rewards."""
    return rewards


@BASELINES.register("rloo", "RLOO: compared with the other attempts at the same task")
def rloo(rewards: Sequence[float]) -> Sequence[float] | None:
    """See `leave_one_out`; None if all rewards are equal."""
    return leave_one_out(rewards) if len(set(rewards)) > 1 else None


@BASELINES.register(
    "positive_only", "ours: right answers only, all alike; expert iteration by the step"
)
def positive_only(rewards: Sequence[float]) -> list[float | None]:
    """1 for right answers that beat another attempt. A wrong answer is never reinforced, even if it
    beats unparsable ones."""
    return [
        1.0 if reward > 0 and value > _FLAT else None
        for reward, value in zip(rewards, leave_one_out(rewards), strict=True)
    ]


def leave_one_out(rewards: Sequence[float]) -> list[float]:
    """Each reward minus the mean of the others; 0 for a single one.

    The baseline of RLOO (Ahmadian et al. 2024, arXiv 2402.14740) over the attempts at one task. It
    removes the difficulty of the task and leaves the quality of the attempt.
    """
    if len(rewards) < 2:
        return [0.0] * len(rewards)
    total = sum(rewards)
    return [reward - (total - reward) / (len(rewards) - 1) for reward in rewards]
