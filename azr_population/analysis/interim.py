"""Planned interim analyses: which share of the level each look at the data may spend.

A test after 4 seeds and again after 12 has two chances of a false positive. A hypothesis therefore
names its looks before the first run, and together their levels spend at most .05, as group
sequential designs count it (O'Brien and Fleming 1979): the test statistics of two looks are normal
with the correlation sqrt(n1 / n2). At another number of seeds nothing is decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy import stats

from azr_population.analysis.statistics import LEVEL, Estimate


def spent_level(looks: Mapping[int, float]) -> float:
    """The chance that any of the looks, each two-sided at its own level, rejects a true null."""
    seeds = np.array(sorted(looks), dtype=float)
    bounds = stats.norm.isf([looks[int(n)] / 2 for n in seeds])
    correlation = np.sqrt(np.minimum.outer(seeds, seeds) / np.maximum.outer(seeds, seeds))
    return 1 - float(stats.multivariate_normal(cov=correlation).cdf(bounds, lower_limit=-bounds))


def check_looks(looks: Mapping[int, float], level: float = LEVEL) -> None:
    """Raises ValueError: levels outside (0, 1), that spend more than `level` (to 1%: published
    bounds are rounded), or a look at fewer than two seeds."""
    if any(seeds < 2 for seeds in looks):
        raise ValueError(f"a look needs two seeds at least, got {min(looks)}")
    if any(not 0 < share < 1 for share in looks.values()):
        raise ValueError(f"the level of a look is between 0 and 1, got {dict(looks)}")
    if looks and (spent := spent_level(looks)) > 1.01 * level:
        raise ValueError(f"the looks spend {spent:.3g} of a level of {level:g}")


def level_at(looks: Mapping[int, float], seeds: int, level: float = LEVEL) -> float | None:
    """The level at which to test with so many seeds: `level` where no looks were planned, None
    where a look was not planned."""
    return looks.get(seeds) if looks else level


def verdict(test: Estimate, looks: Mapping[int, float], margin: float = 0.0) -> str:
    """`shown`, `refuted`, `not shown`, or why it is `not decided`; of a difference above `margin`,
    whose interval has the level of the look."""
    if level_at(looks, test.n) is None:
        planned = ", ".join(map(str, looks))
        return f"not decided: tests are planned at {planned} seeds, here are {test.n}"
    if math.isnan(test.low):
        return "not decided: one seed has no interval"
    if test.low > margin:
        return "shown"
    return "refuted" if test.high < margin else "not shown"
