"""Charts in which nothing moves are no charts: what they would show is a sentence."""

from collections.abc import Sequence
from typing import Any

from azr_population.runs.formatting import figure


def without_constants(
    charts: Sequence[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """The charts that show something move, and of each other one its section and a sentence."""
    moving, constant = [], []
    for chart in charts:
        seen = {y for line in chart["lines"] for _, y, *_ in line["points"]}
        if len(seen) > 1:
            moving.append(chart)
        else:
            told = f"{chart['title']}: {figure(seen.pop(), chart['format'])} throughout."
            constant.append({"section": chart["section"], "text": told})
    return moving, constant
