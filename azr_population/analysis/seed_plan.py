"""The number of seeds that a comparison needs, from how far seeds lie apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from azr_population.analysis.inputs import arms_of
from azr_population.analysis.measuring import PRIMARY_METRICS, Measuring
from azr_population.analysis.metrics import all_metrics
from azr_population.analysis.sentences import in_sentence
from azr_population.analysis.statistics import LEVEL, detectable, seeds_for, upper_sd
from azr_population.errors import UserError


@dataclass(frozen=True)
class SeedPlan:
    """Differences that numbers of seeds would show, from how much runs of one arm differ."""

    sd: float
    """The standard deviation of the score over seeds."""
    freedom: int
    """Degrees of freedom of `sd`; the differences are for its upper bound."""
    spread_of: str
    """The measure and the runs that vary so."""
    pairs: Sequence[int]
    """Numbers of pairs of arms, corrected by Holm: the first verdict has the level over them."""

    SEEDS = (3, 4, 6, 8, 12, 24)
    POINTS = (5, 3, 2, 1)

    def differences(self, pairs: int) -> list[float]:
        """For each of `SEEDS` the difference that is shown with a chance of about 80%."""
        sd = upper_sd(self.sd, self.freedom)
        return [detectable(sd, n, LEVEL / pairs) for n in self.SEEDS]

    def seeds(self, pairs: int) -> dict[int, int | None]:
        """Seeds in each arm by the difference in points that they show; None: above 200."""
        sd = upper_sd(self.sd, self.freedom)
        return {points: seeds_for(sd, points / 100, LEVEL / pairs) for points in self.POINTS}

    def to_json(self) -> dict[str, Any]:
        """For scripts; differences are fractions."""
        rows = [
            {"pairs": count, "shown": dict(zip(self.SEEDS, self.differences(count), strict=True))}
            | {"seeds_for_points": self.seeds(count)}
            for count in self.pairs
        ]
        return {"sd": self.sd, "of": self.spread_of, "rows": rows}


def plan_seeds(arguments: Sequence[str], pairs: Sequence[int] = ()) -> SeedPlan:
    """The plan from the spread within the arms that the arguments name;
    `pairs` are by default one, and as many as these arms have. Raises UserError: no arm has two
    seeds with a score at its end."""
    arms = arms_of(arguments, fewest=1)
    for name in PRIMARY_METRICS:
        metric = all_metrics()[name]
        rows = [Measuring([arm], drop_failed=True).row(metric) for arm in arms]
        samples = [list(row.measured[0].samples.values()) for row in rows]
        samples = [values for values in samples if len(values) > 1]
        if not samples:
            continue
        squares = sum(float(np.var(values)) * len(values) for values in samples)
        freedom = sum(len(values) - 1 for values in samples)
        runs = f"{sum(map(len, samples))} runs of {len(samples)} arm{'s' * (len(samples) > 1)}"
        pairs = pairs or sorted({1, max(math.comb(len(arms), 2), 1)})
        sd = math.sqrt(squares / freedom)
        return SeedPlan(sd, freedom, f"{in_sentence(metric)}, {runs}", pairs)
    raise UserError(
        "no arm has two seeds with a score at its end, so how much seeds differ is unknown; "
        "compare --plan without runs takes the committed ones"
    )
