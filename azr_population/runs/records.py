"""Helpers for what runs record: numbers, members and roles in flat lines of metrics."""

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

Record = Mapping[str, Any]


def finite_or_none(value: Any) -> float | None:
    """`value` as a float; None if it is not a number below 1e100, whose square would overflow."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e100:
        return None
    return float(value)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the known values; None without any."""
    numbers = [value for value in values if value is not None]
    return math.fsum(numbers) / len(numbers) if numbers else None


def lower_bound(mu: float, sigma: float) -> float:
    """mu - 3 sigma: a member's skill is above this with a probability of 99.9%."""
    return mu - 3.0 * sigma


def conservative(member: Record) -> float | None:
    """The `lower_bound` in a member's metrics; None for a member without a rating."""
    mu, sigma = member.get("mu"), member.get("sigma")
    return None if mu is None or sigma is None else lower_bound(mu, sigma)


class Birth(NamedTuple):
    """A replacement: the child that took a member's slot at the end of a step."""

    step: int
    child: str
    parents: tuple[str, ...] = ()
    operator: str = "?"
    options: str = ""
    """`eps=0.1, f=0.33`."""
    generation: int = 0
    victim: float | None = None
    """The fitness of the member that was replaced."""

    @property
    def origin(self) -> str:
        """`svd_noise(student_0) at step 10`."""
        return f"{self.operator}({', '.join(self.parents)}) at step {self.step}"


def births_of(lineage: Iterable[Record]) -> list[Birth]:
    """The replacements in the lines of `lineage.jsonl`; those without a child are passed over."""
    return [
        Birth(
            line["step"],
            line["child"],
            tuple(str(name) for name in line.get("parents") or ()),
            str(line.get("operator") or "?"),
            ", ".join(f"{key}={value}" for key, value in (line.get("options") or {}).items()),
            line.get("generation") or 0,
            finite_or_none((line.get("fitness") or {}).get("victim")),
        )
        for line in lineage
        if isinstance(line.get("child"), str) and line["child"]
    ]


class Scored(NamedTuple):
    """A member's score at the eval, or AZR's validation, of a step: a share of tasks."""

    score: float
    step: int
    name: str


def member_scores(metrics: Iterable[Record], validations: Iterable[Record]) -> list[Scored]:
    """All scores of a run's records, in their order: of its evals (greedy), or of AZR's validation
    (the mean over its sources)."""
    evals = [
        Scored(score, line["step"], name)
        for line in metrics
        for name, member in metrics_of_members(line).items()
        if (score := finite_or_none(member.get("eval/greedy"))) is not None
    ]
    return evals or [
        Scored(score, row["step"], str(row.get("member")))
        for row in validations
        if (score := mean(map(finite_or_none, (row.get("shares") or {}).values()))) is not None
    ]


def best_of(scores: Iterable[Scored]) -> Scored | None:
    """The highest score, of equal ones the first: that of the member in `members/best`."""
    return max(scores, key=lambda scored: (scored.score, -scored.step), default=None)


def show(value: Any, form: str, missing: str = "-") -> str:
    """`value` in a format such as `{:.0%}`; `missing` if it is not a finite number."""
    figure = finite_or_none(value)
    return missing if figure is None else form.format(figure)


def rating(member: Record) -> str:
    """`25.1 ± 0.4`, mu and sigma of a member's metrics; `-` for a member without a rating."""
    mu, sigma = member.get("mu"), member.get("sigma")
    return "-" if mu is None or sigma is None else f"{mu:.1f} ± {sigma:.1f}"


def by_number(name: str) -> tuple[str, int]:
    """Sorts `student_10` after `student_9`."""
    stem, _, digits = name.rpartition("_")
    return (stem, int(digits)) if digits.isdecimal() else (name, 0)


class Role(str, Enum):
    """The part of a member in a step; PopuLoRA's teachers only propose, its students only solve."""

    TEACHER = "teacher"
    STUDENT = "student"
    AGENT = "agent"
    """The single self-playing model of AZR: proposes and solves."""

    def __str__(self) -> str:
        return self.value


ROLES = tuple(role.value for role in Role)


def grouped(line: Record) -> dict[str, dict[str, Any]]:
    """A flat line of `metrics.jsonl` by the name before the first slash (`teacher`, `student_0`,
    `eval`, `time`, ...) and the rest of the name."""
    groups: dict[str, dict[str, Any]] = {}
    for key, value in line.items():
        group, slash, name = key.partition("/")
        if slash:
            groups.setdefault(group, {})[name] = value
    return groups


def role_of(group: str) -> str:
    """The role of a member (`student_0`) or a role; empty for another group of metrics."""
    role, _, number = group.rpartition("_")
    role = role if number.isdecimal() else group
    return role if role in ROLES else ""


def metrics_of_roles(line: Record) -> dict[str, dict[str, Any]]:
    """The metrics of each role in a flat line."""
    return {name: metrics for name, metrics in grouped(line).items() if name in ROLES}


def metrics_of_members(line: Record) -> dict[str, dict[str, Any]]:
    """The metrics of each member in a flat line."""
    return {
        name: metrics
        for name, metrics in grouped(line).items()
        if role_of(name) and name not in ROLES
    }
