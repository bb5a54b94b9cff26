"""The tidy table: what a run recorded, a line per step, who, and metric.

Columns: `step`, `member`, `role`, `metric`, `value`. A role's own value has no member; a run-wide
value has neither member nor role, and its metric is the whole name with slashes (`eval/greedy`,
`time/step`). Missing names are None, values are finite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from azr_population.domains.metric import Metric
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import ROLES, by_number, finite_or_none, role_of

BUDGET = {
    "trained_samples": "samples trained on",
    "updates": "updates",
    "rollouts": "rollouts",
    "generated_tokens": "tokens generated",
    "trained_tokens": "tokens trained on",
}
"""Metrics of consumption, recorded for each member and under `total/`."""
COLUMNS = ("step", "member", "role", "metric", "value")


def tidy(lines: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The table of flat records, one a step, each with `step` and numbers under names with
    slashes."""
    rows = [
        (line["step"], *_whose(key), value)
        for line in lines
        for key, raw in line.items()
        if key != "step" and (value := finite_or_none(raw)) is not None
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    for column, name in enumerate(COLUMNS):
        if name in ("member", "role"):  # pandas 3 would make text of the column, and NaN of None
            table[name] = pd.Series([row[column] for row in rows], dtype=object)
    return table


def _whose(key: str) -> tuple[str | None, str | None, str]:
    """(member, role, metric) of a key."""
    group, _, name = key.partition("/")
    if name and group in ROLES:
        return None, group, name
    if name and (role := role_of(group)):
        return group, role, name
    return None, None, key


def seed_folders(folder: Path) -> list[Path]:
    """The run directories `seed_<n>` in a folder, by number."""
    paths = [path for path in folder.glob("seed_*") if RunDirectory(path).exists]
    return sorted(paths, key=lambda path: by_number(path.name))


def curve(table: pd.DataFrame, metric: Metric | str, roles: Sequence[str] = ()) -> pd.Series:
    """A metric of one run over its steps: that of the first of the metric's roles (of a name, of
    all roles) which has it, else of the run; empty where it is not recorded. Index `step`,
    ascending."""
    name, in_order = (metric, ROLES) if isinstance(metric, str) else (metric.name, metric.roles)
    rows = table[(table["metric"] == name) & table["member"].isna()]
    for role in roles or in_order:
        if len(values := rows[rows["role"] == role]):
            return values.set_index("step")["value"].sort_index()
    values = rows[rows["role"].isna()]
    return values.set_index("step")["value"].sort_index()


def budget(table: pd.DataFrame, members: int, steps: float = math.inf) -> dict[str, float]:
    """Consumption of one run in a step, on average up to step `steps`: `BUDGET` of a member, and
    `seconds` without evals; NaN where it is not recorded."""
    metrics = [*(f"total/{name}" for name in BUDGET), "time/step", "time/eval"]
    table = table[(table["step"] <= steps) & table["metric"].isin(metrics)]
    used = {name: curve(table, f"total/{name}").mean() / (members or 1) for name in BUDGET}
    seconds = curve(table, "time/step").sub(curve(table, "time/eval"), fill_value=0.0)
    return {name: float(value) for name, value in (used | {"seconds": seconds.mean()}).items()}
