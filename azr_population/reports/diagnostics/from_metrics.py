"""Diagnostics that the lines of `metrics.jsonl` already hold, by role and member."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

from azr_population.reports.diagnostics.catalogue import DIAGNOSTICS
from azr_population.reports.diagnostics.records import Record, roles_of, section, steps_of
from azr_population.reports.diagnostics.statistics import Series
from azr_population.reports.lines import number
from azr_population.runs.directory import RunDirectory

PROPOSERS, SOLVERS = ("teacher", "agent"), ("student", "agent")

# name -> (whose it is when nobody is named, what it is)
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
}


def _recorded(run: RunDirectory, key: str, default: tuple[str, ...]) -> dict[str, Series]:
    """`key` of every role and member; `""` is the role of `default` that occurs."""
    found: dict[str, Series] = {}
    for step in steps_of(run):
        for name, own in (*section(step, "roles").items(), *section(step, "members").items()):
            if (value := number(own.get(key))) is not None:
                found.setdefault(name, []).append((step["step"], value))
    if role := next((role for role in default if role in found), None):
        found[""] = found[role]
    return found


for _name, (_default, _about) in _RECORDED.items():
    DIAGNOSTICS.register(_name, _about)(partial(_recorded, key=_name, default=_default))


@DIAGNOSTICS.register("entropy", "nats per sampled token; unnamed: the mean over all members")
def entropy(run: RunDirectory) -> dict[str, Series]:
    """The mean over all members lays a population over a single agent: in both of them half of the
    rows are proposals and half are attempts."""
    found = _recorded(run, "entropy", ())
    means = _over_members(run, lambda member: number(member.get("entropy")))
    return {**found, **({"": means} if means else {})}


@DIAGNOSTICS.register("seconds", "wall-clock seconds of a step; of a phase by its name")
def seconds(run: RunDirectory) -> dict[str, Series]:
    """`""` is the whole step with its exam, `training` the step without it; then every phase."""
    found: dict[str, Series] = {}
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
            found.setdefault(name, []).append((step["step"], value))
    return found


def _exam(run: RunDirectory, key: str) -> dict[str, Series]:
    found: dict[str, Series] = {}
    for step in steps_of(run):
        exam = step.get("exam")
        if not isinstance(exam, dict):
            continue
        if (value := number(exam.get(key))) is not None:
            found.setdefault("", []).append((step["step"], value))
        for group in ("members", "types"):
            scores = exam.get(group)
            for name, score in (scores if isinstance(scores, dict) else {}).items():
                if (value := number(score)) is not None:
                    found.setdefault(str(name), []).append((step["step"], value))
    takers = {role for name, role in roles_of(run).items() if name in found}
    if len(takers) == 1 and "" in found:
        found[takers.pop()] = found[""]
    return found


for _key in ("mean", "best", "worst"):
    DIAGNOSTICS.register(
        f"exam_{_key}",
        f"share of the fixed held-out tasks solved, {_key} of those who solve; of a member or task "
        "type by its name",
    )(partial(_exam, key=_key))


def _rating(run: RunDirectory, value: Callable[[Record], float | None]) -> dict[str, Series]:
    """Of members and, as means, of roles; a single agent meets nobody and has no rating."""
    found: dict[str, Series] = {}
    roles = {name: role for name, role in roles_of(run).items() if role != "agent"}
    for name in roles:
        found[name] = _over_members(run, value, (name,))
    for role in dict.fromkeys(roles.values()):
        found[role] = _over_members(run, value, [n for n, own in roles.items() if own == role])
    if "student" in found:
        found[""] = found["student"]
    return {name: points for name, points in found.items() if points}


DIAGNOSTICS.register("mu", "TrueSkill points: expected skill; unnamed: students (paper, Fig 5)")(
    partial(_rating, value=lambda member: number(member.get("mu")))
)
DIAGNOSTICS.register("sigma", "TrueSkill points: standard deviation of the belief in mu")(
    partial(_rating, value=lambda member: number(member.get("sigma")))
)


def _over_members(
    run: RunDirectory, value: Callable[[Record], float | None], names: Iterable[str] | None = None
) -> Series:
    """The mean over the members (all, or those named) at each step that has any."""
    wanted = None if names is None else set(names)
    found: Series = []
    for step in steps_of(run):
        own = [
            known
            for name, member in section(step, "members").items()
            if (wanted is None or name in wanted) and (known := value(member)) is not None
        ]
        if own:
            found.append((step["step"], math.fsum(own) / len(own)))
    return found
