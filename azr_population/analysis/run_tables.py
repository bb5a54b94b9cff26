"""The tables of a run's page as records: members, consumption."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from azr_population.printable import duration
from azr_population.reading.tidy import BUDGET
from azr_population.runs.records import (
    ROLES,
    Birth,
    Record,
    by_number,
    conservative,
    metrics_of_members,
    rating,
    role_of,
)


def members_now(metrics: Sequence[Record], births: Sequence[Birth]) -> list[dict[str, Any]]:
    """The members at the last step: teachers first, the highest mu - 3 sigma first. Those born at
    its end are `unplayed`: the results of the step are those of the members that they replaced."""
    last = metrics[-1] if metrics else {"step": 0}
    origin = {birth.child: birth.operator for birth in births}
    newborn = {birth.child for birth in births if birth.step == last["step"]}
    rows = [
        {
            "name": name,
            "role": role_of(name),
            "unplayed": name in newborn,
            "rating": rating(member),
            "conservative": conservative(member),
            "generation": member.get("generation", 0),
            "origin": origin.get(name, "start"),
        }
        | {
            key: None if name in newborn else member.get(key)
            for key in ("reward", "valid_frac", "solve_rate")
        }
        for name, member in metrics_of_members(last).items()
    ]
    return sorted(
        rows,
        key=lambda row: (
            ROLES.index(row["role"]),
            -(row["conservative"] or 0.0),
            by_number(row["name"]),
        ),
    )


def consumption(frame: pd.DataFrame) -> pd.DataFrame:
    """Consumption of each member, a row each by number: `role`, `steps`, the sums of `BUDGET`, and
    `seconds`, a share of those of all steps (without evals) by tokens generated and trained on."""
    rows = frame[frame["member"].notna()]
    steps = rows.groupby("member")["step"].nunique()
    sums = rows[rows["metric"].isin(BUDGET)].pivot_table("value", "member", "metric", "sum")
    used = sums.reindex(index=sorted(steps.index, key=by_number), columns=list(BUDGET)).fillna(0.0)
    tokens = used["generated_tokens"] + used["trained_tokens"]
    seconds = frame.groupby("metric")["value"].sum()
    total = max(0.0, seconds.get("time/step", 0.0) - seconds.get("time/eval", 0.0))
    share = tokens / (tokens.sum() or 1.0)
    return used.assign(role=used.index.map(role_of), steps=steps, seconds=total * share)


def consumption_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Consumption as `cells`: the mean of each `role`, the sum, and every member by its `name`."""
    used = consumption(frame)
    sums = [*BUDGET, "seconds"]
    if not len(used):
        return []

    def cells(values: pd.Series, part: pd.DataFrame) -> list[str]:
        per_step = part["trained_samples"].sum() / part["steps"].sum()
        counts = [f"{values[name]:,.0f}" for name in BUDGET]
        return [f"{per_step:,.1f}", *counts, duration(values["seconds"])]

    rows: list[dict[str, Any]] = [
        {"role": role, "members": len(part), "cells": cells(part[sums].mean(), part)}
        for role, part in used.groupby("role", sort=False)
    ]
    rows.append({"role": "", "cells": cells(used[sums].sum(), used)})
    named = [
        {"name": name, "role": row["role"], "cells": cells(row, used.loc[[name]])}
        for name, row in used.iterrows()
    ]
    return [{"name": "", **row} for row in rows] + named
