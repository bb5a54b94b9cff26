"""What members consumed: whether two arms had the same budget."""

from typing import Any

from azr_population.runs.diagnostics.kept import totals as totals_of_results
from azr_population.runs.directory import RunDirectory
from azr_population.runs.records import number, section, steps_of

COUNTED = ("tokens", "rollouts", "trained_tokens", "trained_rows", "updates")
"""Tokens generated, completions generated, tokens and rows trained on, optimizer steps."""


def consumption(run: RunDirectory, last: int | None = None) -> dict[str, dict[str, Any]]:
    """Totals up to step `last` by member, by role (`role:teacher`, ...) and over all (`all`).

    Each has the counts of `COUNTED`, `members`, `steps` (those in which it was recorded),
    `rows_per_step` (trained rows per member and step) and `seconds`: for `all` those of the steps
    without exams, otherwise a share of them by generated and trained tokens, since members run in
    one batch and are not timed one by one. The kept curves of a run only have `all`, over all
    steps.
    """
    if run.results_only:
        return {"all": totals_of_results(run)}
    steps = [step for step in steps_of(run) if last is None or step["step"] <= last]
    members: dict[str, dict[str, Any]] = {}
    for step in steps:
        for name, recorded in section(step, "members").items():
            role = str(recorded.get("role", ""))
            counts = {"role": role, **dict.fromkeys(COUNTED, 0), "steps": 0, "members": 1}
            member = members.setdefault(name, counts)
            member["steps"] += 1
            for key in COUNTED:
                member[key] += int(number(recorded.get(key)) or 0)
    groups: dict[str, list[dict[str, Any]]] = {}
    for member in members.values():
        groups.setdefault(f"role:{member['role']}", []).append(member)
    groups["all"] = list(members.values())
    totals = {
        name: {
            "role": name.removeprefix("role:") if name != "all" else "",
            **{key: sum(member[key] for member in group) for key in COUNTED},
            "steps": max((member["steps"] for member in group), default=0),
            "members": len(group),
        }
        for name, group in groups.items()
    }
    seconds = sum(_seconds(step) for step in steps)
    whole = totals["all"]["tokens"] + totals["all"]["trained_tokens"]
    for consumer in (*members.values(), *totals.values()):
        share = (consumer["tokens"] + consumer["trained_tokens"]) / whole if whole else 0.0
        consumer["seconds"] = seconds * share
        budget = consumer["members"] * consumer["steps"]
        consumer["rows_per_step"] = consumer["trained_rows"] / budget if budget else 0.0
    totals["all"]["seconds"] = seconds
    return {**members, **totals}


def _seconds(step: dict[str, Any]) -> float:
    phases = step.get("phases")
    exam = number(phases.get("exam")) if isinstance(phases, dict) else None
    return max(0.0, (number(step.get("seconds")) or 0.0) - (exam or 0.0))
