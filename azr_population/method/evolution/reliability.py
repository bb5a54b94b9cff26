"""Whether an exam can tell members apart, from their scores task by task."""

import math
from collections.abc import Sequence

import numpy as np


def reliability(scores: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """Of the members' scores at the same tasks [members][tasks]: how much of the variance of their
    means is skill, and the standard deviation of skill, in the scores' unit. Both are below 0 where
    noise alone would make the members differ more. None where there is no telling: fewer than two
    members or tasks, unequal tasks, members without a difference.

    What a member does better at some tasks than at others counts as noise: other tasks of the kind
    might have told otherwise. Source: Hoyt, "Test reliability estimated by analysis of variance"
    (Psychometrika 1941), which is Cronbach's alpha.
    """
    if len({len(row) for row in scores}) != 1:
        return None
    table = np.array(scores, dtype=float)
    if min(table.shape) < 2:
        return None
    (members, tasks), means = table.shape, table.mean(axis=1)
    rest = table - means[:, None] - table.mean(axis=0) + table.mean()
    of_means = tasks * float(means.var(ddof=1))
    noise = float((rest**2).sum()) / ((members - 1) * (tasks - 1))
    if of_means < 1e-12:
        return None
    skill = (of_means - noise) / tasks
    return 1 - noise / of_means, math.copysign(math.sqrt(abs(skill)), skill)
