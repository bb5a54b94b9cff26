"""What changed in the course of one run, each change with its 95% interval.

The first tenth of the steps is set against the last, and the first eval against the last. The
intervals hold the chance in which tasks and answers were drawn. They say nothing about other seeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from azr_population.analysis.statistics import Estimate, compare, difference_of_shares, tenth
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import Record, domain_of, number, step_of


class Change(NamedTuple):
    """A metric early and late in a run, and the difference (late minus early) with its interval."""

    first: float
    last: float
    difference: Estimate


def changes(run: RunDirectory, last: int) -> dict[str, Change]:
    """By metric: `solve_rate`, the size, `valid_frac`, `eval/greedy`, as far as recorded up to step
    `last`; nothing for a run of one step.

    The solve rate and the size are means over valid tasks (Welch's interval; a task is one
    observation, since its attempts depend on each other), the valid share is of proposals
    (Newcombe's), the eval is paired by its tasks, each scored by the mean over members.
    """
    if last < 2:
        return {}
    sizes = [measure.name for measure in domain_of(run).measures[:1]]
    tasks, matches = (_ends(rows, last) for rows in (run.tasks(), run.matches()))
    found = {name: _means(tasks, name) for name in ("solve_rate", *sizes)}
    found |= {"valid_frac": _valid(matches), "eval/greedy": _eval(run)}
    return {name: change for name, change in found.items() if change is not None}


def _ends(rows: Iterable[Record], last: int) -> list[list[Record]]:
    """The records of the first and of the last tenth of the steps."""
    ends: list[list[Record]] = [[], []]
    for row in rows:
        step = step_of(row)
        if step is not None and step <= tenth(last):
            ends[0].append(row)
        elif step is not None and last - tenth(last) < step <= last:
            ends[1].append(row)
    return ends


def _means(ends: list[list[Record]], key: str) -> Change | None:
    first, late = ([v for row in rows if (v := number(row.get(key))) is not None] for rows in ends)
    if not first or not late:
        return None
    difference = compare(late, first, paired=False, permute=False)
    return Change(sum(first) / len(first), sum(late) / len(late), difference)


def _valid(ends: list[list[Record]]) -> Change | None:
    first, late = (
        tuple(int(sum(number(row.get(key)) or 0 for row in rows)) for key in ("valid", "proposed"))
        for rows in ends
    )
    if not (0 <= first[0] <= first[1] > 0 and 0 <= late[0] <= late[1] > 0):
        return None
    difference = difference_of_shares((late[0], late[1]), (first[0], first[1]))
    return Change(first[0] / first[1], late[0] / late[1], difference)


def _eval(run: RunDirectory) -> Change | None:
    scores: dict[int, list[list[float]]] = {}
    for row in run.evals():
        step, greedy = step_of(row), row.get("greedy")
        if step is not None and isinstance(greedy, list) and greedy:
            known = [value for score in greedy if (value := number(score)) is not None]
            if len(known) == len(greedy):
                scores.setdefault(step, []).append(known)
    if len(scores) < 2:
        return None
    first, late = (pd.DataFrame(scores[pick(scores)]).mean() for pick in (min, max))
    if len(first) != len(late):
        return None
    difference = compare(list(late), list(first), paired=True, permute=False)
    return Change(float(first.mean()), float(late.mean()), difference)
