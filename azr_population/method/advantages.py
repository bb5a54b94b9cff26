"""Advantages: TRR++ (task-relative REINFORCE++; AZR, section 3.3.5), and what attempts at one task
are compared with."""

from collections.abc import Hashable, Sequence

import numpy as np

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


def leave_one_out(rewards: Sequence[float]) -> list[float]:
    """Each reward minus the mean of the others; 0 for a single one.

    The baseline of RLOO (Ahmadian et al. 2024, arXiv 2402.14740) over the attempts at one task. It
    removes the difficulty of the task and leaves the quality of the attempt.
    """
    if len(rewards) < 2:
        return [0.0] * len(rewards)
    total = sum(rewards)
    return [reward - (total - reward) / (len(rewards) - 1) for reward in rewards]


def attempt_values(rewards: Sequence[float], compared_with: str) -> list[float | None]:
    """Values of the attempts at one task, by `population.student_advantage`: None marks one that
    teaches nothing.

    - `batch`: the reward, which `task_relative` compares with all attempts at that type of task.
    - `rloo`: the reward minus the mean of the others; None for all if all are equal.
    - `positive_only`: 1 for a right answer that beats another attempt, else None. This is the
      advantage itself: normalising would push down half of the right answers. A wrong answer is
      never reinforced, even if it beats unparsable ones. Ours: expert iteration by the step.
    """
    if compared_with == "batch":
        return list(rewards)
    values = leave_one_out(rewards)
    if compared_with == "rloo":
        return [value if len(set(rewards)) > 1 else None for value in values]
    return [
        1.0 if reward > 0 and value > _FLAT else None
        for reward, value in zip(rewards, values, strict=True)
    ]
