"""TRR++: task-relative REINFORCE++ (AZR, section 3.3.5); and a baseline per task, as an option."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

_FLAT = 1e-6


def task_relative(rewards: Sequence[float], groups: Sequence[Hashable]) -> list[float | None]:
    """Rewards normalised within their group: (r - mean) / standard deviation.

    A group is (member, role, task type), so every member has a baseline of its own for each kind
    of row. None marks the rows of a group whose rewards do not differ: they teach nothing, and
    dividing by a tiny deviation would only amplify noise.
    """
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    advantages: list[float | None] = [None] * len(rewards)
    for indices in members.values():
        values = np.array([rewards[index] for index in indices])
        deviation = values.std()
        if deviation > _FLAT:
            for index, value in zip(indices, (values - values.mean()) / deviation, strict=True):
                advantages[index] = float(value)
    return advantages


def leave_one_out(rewards: Sequence[float]) -> list[float]:
    """Each reward minus the mean of the others; 0 for a single one.

    The baseline of RLOO (Ahmadian et al. 2024, arXiv 2402.14740) over the attempts at one task: how
    hard the task is drops out, so what is left is what the attempt did well or badly.
    """
    if len(rewards) < 2:
        return [0.0] * len(rewards)
    total = sum(rewards)
    return [reward - (total - reward) / (len(rewards) - 1) for reward in rewards]
