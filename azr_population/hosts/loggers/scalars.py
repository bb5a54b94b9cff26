"""The numbers of a step for loggers: those of its line of `metrics.jsonl`, under the same names."""

from collections.abc import Mapping
from typing import Any

from azr_population.runs.records import number


def step_figures(line: Mapping[str, Any]) -> dict[str, float]:
    """All finite numbers of a line but `step`, which loggers take apart."""
    known = {name: number(value) for name, value in line.items() if name != "step"}
    return {name: value for name, value in known.items() if value is not None}
