"""What `azr-population benchmark` left in a run: figures of the benchmarks."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from azr_population.domains.measure import Measure
from azr_population.errors import UserError
from azr_population.files import read_json
from azr_population.runs.diagnostics.catalogue import reads
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory

FIGURES = "evaluation/figures.json"
"""In a run's folder; `evals/run.py` writes it."""


def read_figures(path: Path) -> dict[str, Any]:
    """The table in the file; {} where there is none, or a file that is no such thing."""
    try:
        figures = read_json(path)
        for line in figures["lines"]:
            [line["model"], line["k"] + 0]
            for cell in line["cells"].values():
                [float(cell[key]) for key in ("value", "low", "high")]
    except (UserError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return dict(figures)


def headline(figures: Mapping[str, Any]) -> float | None:
    """Pass@1 of the members' mean (of the only model, where there is one) over all benchmarks, as
    the table's column `all` has it; None without a line."""
    lines = [line for line in figures.get("lines", ()) if line["k"] == 1]
    order = {"summary": 0, "base": 2}  # the first summary is the mean
    line = min(lines, key=lambda line: order.get(line.get("role"), 1), default=None)
    if line is None or not line["cells"]:
        return None
    titles = [one.get("title") for one in figures.get("benchmarks", ())]
    wanted = ["all"] if "all" in line["cells"] else titles
    cells = [line["cells"][title] for title in wanted if title in line["cells"]]
    values = [float(cell["value"]) for cell in cells or line["cells"].values()]
    return math.fsum(values) / len(values)


def conditions(figures: Mapping[str, Any]) -> str:
    """What has to be equal for two tables to be compared: problems, prompts, limits, sampling."""
    return repr([figures.get(key) for key in ("benchmarks", "samples", "temperature")])


@reads("benchmarks")
def _benchmarks(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """One value, of the members as they are now; step 0, for it belongs to none."""
    value = headline(read_figures(run.path / FIGURES))
    return {} if value is None else {"": [(0, value)]}
