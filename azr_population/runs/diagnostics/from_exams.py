"""What measuring says: `evals.jsonl`, with every member's score at every task, `validations.jsonl`,
AZR's own, and the cross-play of stored members (`azr-population crossplay`)."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from azr_population.domains.measure import Measure
from azr_population.errors import UserError
from azr_population.files import read_json
from azr_population.method.evolution.reliability import reliability
from azr_population.runs.diagnostics.catalogue import last_step, reads
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import mean, number

CROSSPLAY = "crossplay.json"
"""Where a run's own cross-play lies in it."""


@reads("validation")
def _validation(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """The mean over the sources of AZR's validation tasks, and each by its name. The one at a run's
    end may be the second after that step, and then counts."""
    found: dict[str, dict[int, float]] = {}
    for row in run.validations():
        shares = row.get("shares") or {}
        known = {
            str(source): value
            for source, share in shares.items()
            if (value := number(share)) is not None
        }
        if known:
            known = {"": math.fsum(known.values()) / len(known), **known}
        for source, value in known.items():
            found.setdefault(source, {})[row["step"]] = value
    return {source: sorted(steps.items()) for source, steps in found.items()}


@reads("exam_disagreement")
def exam_disagreement(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """How differently members behave: the mean over pairs and tasks. Where
    answers are sampled, chance adds to it, and less with more attempts: compare sittings of equal
    length."""
    return _over_sittings(
        run,
        ("t1",),
        lambda scores: mean(_distance(a, b) for a, b in combinations(scores, 2)),
    )


@reads("exam_spread", "exam_reliability")
def who_is_better(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """Whether the students of a sitting differ by more than the exam's noise, by greedy decoding
    where that was recorded. The spread is negative where they differ by less."""
    place = ("exam_reliability", "exam_spread").index(measure.name)

    def value(scores: Sequence[list[Any]]) -> float | None:
        if any(number(score) is None for row in scores for score in row):
            return None
        known = reliability(scores)
        return known[place] if known else None

    return _over_sittings(run, ("greedy",), value)


def _over_sittings(
    run: RunDirectory,
    keys: tuple[str, ...],
    value: Callable[[Sequence[list[Any]]], float | None],
) -> dict[str, Series]:
    """`value` of the members' scores at each sitting, under the first of `keys` that a line has."""
    sittings: dict[int, dict[str, list[Any]]] = {}
    for row in run.evals():
        scores = next((s for key in keys if isinstance(s := row.get(key), list)), [])
        sittings.setdefault(row["step"], {})[str(row.get("member"))] = scores
    series: Series = []
    for step, by_member in sorted(sittings.items()):
        if (known := value(list(by_member.values()))) is not None:
            series.append((step, known))
    return {"": series, "student": series} if series else {}


def _distance(one: list[Any], other: list[Any]) -> float | None:
    """None for lists of different exams, and for what is no score."""
    pairs = [(number(a), number(b)) for a, b in zip(one, other, strict=False)]
    if not pairs or len(one) != len(other):
        return None
    known = [abs(a - b) for a, b in pairs if a is not None and b is not None]
    return math.fsum(known) / len(known) if len(known) == len(pairs) else None


@reads("student_slope", "teacher_slope")
def _slope(run: RunDirectory, measure: Measure) -> dict[str, Series]:
    """One value, at the last step; nothing where nobody has played."""
    path = run.path / CROSSPLAY
    try:
        content = read_json(path) if path.is_file() else {}
    except UserError:
        return {}
    slopes = content.get("slopes") if isinstance(content, dict) else None
    own = slopes.get(measure.name.removesuffix("_slope")) if isinstance(slopes, dict) else None
    value = number(own)
    return {} if value is None else {"": [(last_step(run), value)]}
