"""What changed in the course of one run, each change with its 95% interval.

The first tenth of the steps is set against the last, and the first exam against the last. The
intervals hold the chance in which tasks and answers were drawn. They say nothing about other seeds.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from azr_population.runs.diagnostics.measures import size_of
from azr_population.runs.diagnostics.statistics import Estimate, difference, difference_of_shares
from azr_population.runs.diagnostics.takes import tenth
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import Record, domain_of, mean, number, step_of


class Change(NamedTuple):
    """A measure early and late in a run, and the difference with its interval."""

    first: float
    last: float
    difference: Estimate
    """Late minus early; `n` is the smaller number of tasks or proposals."""


def changes(run: RunDirectory, last: int) -> dict[str, Change]:
    """By measure: `solve_rate`, the size, `validity`, `exam_mean`, as far as recorded up to
    step `last`; nothing for a run of one step.

    The solve rate and the size are means over valid tasks (Welch's interval, a task is one
    observation, since its attempts depend on each other), the validity is a share of proposals
    (Newcombe's), the exam is paired by its tasks, each scored by the mean over members.
    """
    if last < 2:
        return {}
    halves = {
        "solve_rate": _means(run.tasks(), "solve_rate", last),
        "validity": _valid(run, last),
        "exam_mean": _exam(run),
    }
    if size := size_of(domain_of(run)):
        halves[size.name] = _means(run.tasks(), size.name, last)
    return {name: change for name, change in halves.items() if change is not None}


def _means(rows: Iterable[Record], key: str, last: int) -> Change | None:
    first, late = _ends(((row, number(row.get(key))) for row in rows), last)
    if not first or not late:
        return None
    return Change(
        math.fsum(first) / len(first),
        math.fsum(late) / len(late),
        difference(late, first, paired=False),
    )


def _ends(
    rows: Iterable[tuple[Record, float | None]], last: int
) -> tuple[list[float], list[float]]:
    """The values of the first and of the last tenth of the steps."""
    width = tenth(last)
    first: list[float] = []
    late: list[float] = []
    for row, value in rows:
        step = step_of(row)
        if step is None or value is None:
            continue
        if step <= width:
            first.append(value)
        elif last - width < step <= last:
            late.append(value)
    return first, late


def _valid(run: RunDirectory, last: int) -> Change | None:
    matches = list(run.matches())
    counts = [
        tuple(
            int(sum(values)) for values in _ends(((m, number(m.get(key))) for m in matches), last)
        )
        for key in ("valid", "proposed")
    ]
    (first, late), (of_first, of_late) = counts
    if not of_first or not of_late or first > of_first or late > of_late:
        return None
    return Change(
        first / of_first,
        late / of_late,
        difference_of_shares((late, of_late), (first, of_first)),
    )


def _exam(run: RunDirectory) -> Change | None:
    sittings: dict[int, list[list[float]]] = {}
    for row in run.evals():
        step, scores = step_of(row), row.get("greedy")
        if step is not None and isinstance(scores, list) and scores:
            known = [number(score) for score in scores]
            if None not in known:
                sittings.setdefault(step, []).append([score or 0.0 for score in known])
    if len(sittings) < 2:
        return None
    first, late = (_by_task(sittings[pick(sittings)]) for pick in (min, max))
    if len(first) != len(late):
        return None
    return Change(mean(first) or 0.0, mean(late) or 0.0, difference(late, first, paired=True))


def _by_task(members: list[list[float]]) -> list[float]:
    """Each task's mean over the members."""
    return [math.fsum(scores) / len(scores) for scores in zip(*members, strict=False)]
