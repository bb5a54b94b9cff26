"""The number of seeds that a comparison needs, from how far seeds lie apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from azr_population.analysis.inputs import arms_of
from azr_population.analysis.measuring import PRIMARY_METRICS, Measuring
from azr_population.analysis.metrics import all_metrics
from azr_population.analysis.sentences import in_sentence
from azr_population.analysis.statistics import LEVEL, detectable, seeds_for, upper_sd
from azr_population.errors import UserError

SEEDS = (3, 4, 6, 8, 12, 24)
"""Seeds in each arm of which a plan says what they show."""
POINTS = (5, 3, 2, 1)
"""Differences of which a plan says how many seeds show them."""


def plan_seeds(arguments: Sequence[str], pairs: Sequence[int] = ()) -> dict[str, Any]:
    """The differences that numbers of seeds would show, from the spread within the arms that the
    arguments name, as JSON.

    Args:
        pairs: numbers of pairs of arms; by default one, and as many as these arms have.

    Returns:
        `sd` over seeds; `of`, the measure and the runs that vary so; `rows`, for each number of
        `pairs` (the first verdict by Holm has the level over them): `shown`, by seeds in each arm
        the difference (a fraction) that shows with a chance of about 80%, and `seeds_for_points`,
        by points of difference the seeds that would show it (None: above 200).

    Raises UserError: no arm has two seeds with a score at its end.
    """
    arms = arms_of(arguments, fewest=1)
    for name in PRIMARY_METRICS:
        metric = all_metrics()[name]
        measured = [Measuring([arm], drop_failed=True).row(metric).measured[0] for arm in arms]
        samples = [list(each.samples.values()) for each in measured]
        samples = [values for values in samples if len(values) > 1]
        if not samples:
            continue
        squares = sum(float(np.var(values)) * len(values) for values in samples)
        freedom = sum(len(values) - 1 for values in samples)
        runs = f"{sum(map(len, samples))} runs of {len(samples)} arm{'s' * (len(samples) > 1)}"
        pairs = pairs or sorted({1, max(math.comb(len(arms), 2), 1)})
        sd = math.sqrt(squares / freedom)
        most = upper_sd(sd, freedom)
        rows = [
            {"pairs": count, "shown": {n: detectable(most, n, LEVEL / count) for n in SEEDS}}
            | {"seeds_for_points": {x: seeds_for(most, x / 100, LEVEL / count) for x in POINTS}}
            for count in pairs
        ]
        return {"sd": sd, "of": f"{in_sentence(metric)}, {runs}", "rows": rows}
    raise UserError(
        "no arm has two seeds with a score at its end, so how much seeds differ is unknown; "
        "compare --plan without runs takes the committed ones"
    )
