"""What every member has consumed: the proof, or not, that two arms had the same budget."""

from __future__ import annotations

from typing import Any

from azr_population.reports.diagnostics.kept import is_kept, kept_totals
from azr_population.reports.diagnostics.records import section, steps_of
from azr_population.reports.lines import number
from azr_population.runs.directory import RunDirectory

COUNTED = ("tokens", "rollouts", "trained_tokens", "trained_rows", "updates")
"""Tokens generated, completions generated, tokens and rows trained on, optimizer steps."""


def consumption(run: RunDirectory, last: int | None = None) -> dict[str, dict[str, Any]]:
    """Totals over the run or up to step `last`, per member, per role (`role:teacher`, ...) and of
    all (`all`).

    Each has the counts of `COUNTED`, `members`, `steps` (recorded with a member in it),
    `rows_per_step` (trained rows per member and step) and `seconds`: for `all`, those of the steps
    without their exams; for the others its share of them by generated and trained tokens, since
    members run in one batch and are not timed one by one. What is kept of a run has `all` only,
    and of all its steps.
    """
    if is_kept(run):
        return {"all": kept_totals(run)}
    steps = [step for step in steps_of(run) if last is None or step["step"] <= last]
    found: dict[str, dict[str, Any]] = {}
    for step in steps:
        for name, member in section(step, "members").items():
            own = found.setdefault(
                name,
                {"role": str(member.get("role", "")), **dict.fromkeys(COUNTED, 0), "steps": 0},
            )
            own["steps"] += 1
            for key in COUNTED:
                own[key] += int(number(member.get(key)) or 0)
    roles = dict.fromkeys(own["role"] for own in found.values())
    groups = {f"role:{role}": [o for o in found.values() if o["role"] == role] for role in roles}
    groups["all"] = list(found.values())
    members = {name: {**own, "members": 1} for name, own in found.items()}
    totals = {
        name: {
            "role": name.removeprefix("role:") if name != "all" else "",
            **{key: sum(one[key] for one in own) for key in COUNTED},
            "steps": max((one["steps"] for one in own), default=0),
            "members": len(own),
        }
        for name, own in groups.items()
    }
    seconds = sum(_seconds(step) for step in steps)
    whole = totals["all"]["tokens"] + totals["all"]["trained_tokens"]
    for own in (*members.values(), *totals.values()):
        share = (own["tokens"] + own["trained_tokens"]) / whole if whole else 0.0
        own["seconds"] = seconds * share
        budget = own["members"] * own["steps"]
        own["rows_per_step"] = own["trained_rows"] / budget if budget else 0.0
    totals["all"]["seconds"] = seconds
    return {**members, **totals}


def _seconds(step: dict[str, Any]) -> float:
    phases = step.get("phases")
    exam = number(phases.get("exam")) if isinstance(phases, dict) else None
    return max(0.0, (number(step.get("seconds")) or 0.0) - (exam or 0.0))
