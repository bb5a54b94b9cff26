"""Children compared with the other members of their role (paper, Fig 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pandas as pd

from azr_population.analysis.statistics import interval
from azr_population.reading.run_data import RunData
from azr_population.runs.records import role_of

YOUNG = 10
"""Steps after its birth in which no other child is held against a member. Not the 20 in which the
paper has children back: of four members with a birth every 5 steps hardly any is older."""
SPAN, LAST = 5, 20
"""Steps of a mean, and up to which children are followed."""

ALL = "all operators"
MEASURES = {"student": "solve_rate", "teacher": "reward"}
"""The metric by which members of a role are compared."""


def child_gaps(run: RunData, metric: str, role: str) -> pd.DataFrame:
    """The births of a role: `born`, `child`, `operator`, `step` after the birth, and `gap`.

    The gap is the member's value less the mean of the others of its role that are not `YOUNG`, over
    the `SPAN` steps up to `step`; at step 0 that of the member which the child replaced. A child's
    gaps end where it is replaced; where there is nobody to hold it against, it has none.
    """
    table = run.table[run.table["metric"] == metric]
    members = table[(table["role"] == role) & table["member"].notna()]
    values = members.pivot(index="step", columns="member", values="value")
    births = [birth for birth in run.births if birth.child in values]
    grown = values.copy()
    for birth in births:  # a child's results begin a step after its birth
        grown.loc[birth.step + 1 : birth.step + YOUNG, birth.child] = float("nan")
    rows = []
    for birth in births:
        child, born = birth.child, birth.step
        gaps = values[child] - grown.drop(columns=child).mean(axis=1)
        deaths = [b.step for b in births if b.child == child and b.step > born]
        gaps = gaps.loc[: min(deaths, default=None)]
        for step in range(0, LAST + 1, SPAN):
            gap = gaps.loc[born + step - SPAN + 1 : born + step].mean()
            rows.append((born, child, birth.operator, step, gap))
    frame = pd.DataFrame(rows, columns=["born", "child", "operator", "step", "gap"])
    return frame.dropna(subset=["gap"])


def recovery(runs: Iterable[RunData], metric: str, role: str) -> pd.DataFrame:
    """The `child_gaps` of seeds by `operator` (`ALL` first) and `step`: `value`, the mean over
    seeds of each seed's mean, with its interval (`low`, `high`), `births` and `seeds`."""
    gaps = [child_gaps(run, metric, role).assign(seed=i) for i, run in enumerate(runs)]
    rows = []
    if any(map(len, gaps)):
        every = pd.concat(gaps)
        groups = pd.concat([every.assign(operator=ALL), every.sort_values("operator")])
        for (operator, step), group in groups.groupby(["operator", "step"], sort=False):
            test = interval(group.groupby("seed")["gap"].mean().tolist())
            rows.append((operator, step, test.mean, test.low, test.high, len(group), test.n))
    columns = ["operator", "step", "value", "low", "high", "births", "seeds"]
    return pd.DataFrame(rows, columns=columns).sort_values("step", kind="stable")


GAPS = {"replaced": "the replaced", "first": "steps 1 to 5", "last": "steps 16 to 20"}
"""A gap of `children_by_operator` -> the head of its column on a page."""


def children_by_operator(run: RunData) -> list[dict[str, Any]]:
    """A record for each role and operator that has children, the most used first: `born`, `alive`,
    and by the role's measure the gaps of those who were `replaced`, and of the children at `first`
    and at `last`; None where there is none."""
    births = run.births
    living = {birth.child: birth for birth in births}
    rows = []
    for role, metric in MEASURES.items():
        gaps = recovery([run], metric, role).set_index(["operator", "step"])["value"]
        of_role = [birth for birth in births if role_of(birth.child) == role]
        born = Counter(birth.operator for birth in of_role)
        alive = Counter(birth.operator for birth in of_role if living[birth.child] is birth)
        for name, count in born.most_common():
            row = {"role": role, "operator": name, "born": count, "alive": alive[name]}
            at = {"replaced": 0, "first": SPAN, "last": LAST}
            rows.append(row | {key: gaps.get((name, step)) for key, step in at.items()})
    return rows
