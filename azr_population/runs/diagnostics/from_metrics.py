"""Diagnostics read from the lines of `metrics.jsonl`, by role and member."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from statistics import correlation

from azr_population.runs.diagnostics.catalogue import DIAGNOSTICS
from azr_population.runs.diagnostics.statistics import Series
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import Record, number, roles_of, section, steps_of

PROPOSERS, SOLVERS = ("teacher", "agent"), ("student", "agent")

# Name -> (whose it is if nobody is named, what it is).
_RECORDED = {
    "solve_rate": (SOLVERS, "share of attempts at valid tasks that solve them, mean over members"),
    "validity": (PROPOSERS, "share of proposals that are valid tasks"),
    "unique": (PROPOSERS, "share of valid tasks that nobody else proposed in step or buffer"),
    "proposal_reward": (PROPOSERS, "mean reward of a proposal"),
    "proposal_tokens": (PROPOSERS, "mean tokens of a proposal, valid or not (paper, Fig 19)"),
    "answer_tokens": (SOLVERS, "mean tokens of an attempt (paper, Fig 19)"),
    "ast_nodes": (PROPOSERS, "mean AST nodes of valid programs"),
    "ast_depth": (PROPOSERS, "mean AST depth of valid programs (paper, Fig 4)"),
    "cyclomatic": (PROPOSERS, "mean McCabe complexity of valid programs (paper, Fig 4)"),
    "lines": (PROPOSERS, "mean lines of code of valid programs (paper, Fig 4)"),
    "weight_cosine": (SOLVERS, "mean cosine of two members' dW, at exams; 1: all learned the same"),
}


def _recorded(run: RunDirectory, key: str, default: tuple[str, ...]) -> dict[str, Series]:
    """`key` of every role and member; `""` is the first role of `default` that occurs."""
    series: dict[str, Series] = {}
    for step in steps_of(run):
        for name, row in (*section(step, "roles").items(), *section(step, "members").items()):
            if (value := number(row.get(key))) is not None:
                series.setdefault(name, []).append((step["step"], value))
    if role := next((role for role in default if role in series), None):
        series[""] = series[role]
    return series


for _name, (_default, _about) in _RECORDED.items():
    DIAGNOSTICS.register(_name, _about)(partial(_recorded, key=_name, default=_default))


@DIAGNOSTICS.register("entropy", "nats per sampled token; unnamed: the mean over all members")
def entropy(run: RunDirectory) -> dict[str, Series]:
    """The mean over all members compares a population with a single agent: in both, half of the
    rows are proposals and half are attempts."""
    series = _recorded(run, "entropy", ())
    means = _over_members(run, lambda member: number(member.get("entropy")))
    return {**series, **({"": means} if means else {})}


@DIAGNOSTICS.register("seconds", "wall-clock seconds of a step; of a phase by its name")
def seconds(run: RunDirectory) -> dict[str, Series]:
    """`""` is the whole step, `training` the step without its exam; the others are phases."""
    series: dict[str, Series] = {}
    for step in steps_of(run):
        whole = number(step.get("seconds"))
        phases = step.get("phases")
        known = {
            str(name): v
            for name, value in (phases if isinstance(phases, dict) else {}).items()
            if (v := number(value)) is not None
        }
        if whole is not None:
            known = {"": whole, "training": whole - known.get("exam", 0.0), **known}
        for name, value in known.items():
            series.setdefault(name, []).append((step["step"], value))
    return series


def _exam(run: RunDirectory, key: str) -> dict[str, Series]:
    series: dict[str, Series] = {}
    for step in steps_of(run):
        exam = step.get("exam")
        if not isinstance(exam, dict):
            continue
        if (value := number(exam.get(key))) is not None:
            series.setdefault("", []).append((step["step"], value))
        for group in ("members", "types"):
            scores = exam.get(group)
            for name, score in (scores if isinstance(scores, dict) else {}).items():
                if (value := number(score)) is not None:
                    series.setdefault(str(name), []).append((step["step"], value))
    takers = {role for name, role in roles_of(run).items() if name in series}
    if len(takers) == 1 and "" in series:
        series[takers.pop()] = series[""]
    return series


for _key in ("mean", "best", "worst"):
    DIAGNOSTICS.register(
        f"exam_{_key}",
        f"share of the fixed held-out tasks solved, {_key} of those who solve; of a member or task "
        "type by its name",
    )(partial(_exam, key=_key))


@DIAGNOSTICS.register(
    "fitness_skill", "Pearson's correlation of mu and exam score over the students of a step"
)
def _fitness_skill(run: RunDirectory) -> dict[str, Series]:
    """At every exam of at least three students whose ratings and scores differ."""
    series: Series = []
    for step in steps_of(run):
        exam = step.get("exam")
        scores = exam.get("members") if isinstance(exam, dict) else None
        rated = {name: number(row.get("mu")) for name, row in section(step, "members").items()}
        pairs = [
            (mu, score)
            for name, value in (scores if isinstance(scores, dict) else {}).items()
            if (mu := rated.get(name)) is not None and (score := number(value)) is not None
        ]
        if len(pairs) >= 3 and all(len(set(values)) > 1 for values in zip(*pairs, strict=True)):
            series.append((step["step"], correlation(*zip(*pairs, strict=True))))
    return {"": series, "student": series} if series else {}


@DIAGNOSTICS.register(
    "past_solve_rate", "share of today's tasks solved by past opponents (matchmaking.past)"
)
def _past_solve_rate(run: RunDirectory) -> dict[str, Series]:
    """Falls where teachers have outgrown the students of earlier steps."""
    series: Series = []
    for step in steps_of(run):
        past = step.get("past")
        if isinstance(past, dict) and (value := number(past.get("solve_rate"))) is not None:
            series.append((step["step"], value))
    return {"": series} if series else {}


def _rating(run: RunDirectory, value: Callable[[Record], float | None]) -> dict[str, Series]:
    """A number of the rating, of members and as means of roles. A single agent has no rating; the
    students' mean mu is always the same (`Roster.anchor`), so `""` is the teachers."""
    series: dict[str, Series] = {}
    roles = {name: role for name, role in roles_of(run).items() if role != "agent"}
    for name in roles:
        series[name] = _over_members(run, value, (name,))
    for role in dict.fromkeys(roles.values()):
        series[role] = _over_members(run, value, [n for n, other in roles.items() if other == role])
    if "teacher" in series:
        series[""] = series["teacher"]
    return {name: points for name, points in series.items() if points}


DIAGNOSTICS.register("mu", "TrueSkill points: expected skill; unnamed: teachers (paper, Fig 5)")(
    partial(_rating, value=lambda member: number(member.get("mu")))
)
DIAGNOSTICS.register("sigma", "TrueSkill points: standard deviation of the belief in mu")(
    partial(_rating, value=lambda member: number(member.get("sigma")))
)


def _over_members(
    run: RunDirectory, value: Callable[[Record], float | None], names: Iterable[str] | None = None
) -> Series:
    """The mean over the members (all, or those named) at each step with a value."""
    wanted = None if names is None else set(names)
    means: Series = []
    for step in steps_of(run):
        values = [
            known
            for name, member in section(step, "members").items()
            if (wanted is None or name in wanted) and (known := value(member)) is not None
        ]
        if values:
            means.append((step["step"], math.fsum(values) / len(values)))
    return means
