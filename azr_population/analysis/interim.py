"""Planned interim analyses: which share of the level each look at the data may spend.

Whoever looks after 4 seeds and again after 12 has two chances to be fooled. A hypothesis therefore
names its looks before the first run, and their levels sum to at most .05 (Bonferroni). At another
number of seeds nothing is decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from azr_population.analysis.statistics import LEVEL, Estimate


def check_looks(looks: Mapping[int, float], level: float = LEVEL) -> None:
    """Raises ValueError: levels that are not positive, that sum to more than `level`, or a look at
    fewer than two seeds."""
    if any(seeds < 2 for seeds in looks):
        raise ValueError(f"a look needs two seeds at least, got {min(looks)}")
    if any(not share > 0 for share in looks.values()):
        raise ValueError(f"the level of a look is above 0, got {dict(looks)}")
    if math.fsum(looks.values()) > level + 1e-12:
        raise ValueError(f"the looks spend {math.fsum(looks.values()):g} of a level of {level:g}")


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
