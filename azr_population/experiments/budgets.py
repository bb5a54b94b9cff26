"""What a member of each arm had per step: that the comparison was fair, or where it was not."""

from __future__ import annotations

from azr_population.experiments.tables import Runs, to_csv
from azr_population.reports.diagnostics import consumption

COLUMNS = {
    "rows trained": "trained_rows",
    "updates": "updates",
    "rollouts": "rollouts",
    "tokens generated": "tokens",
    "tokens trained": "trained_tokens",
}
"""heading -> key of `consumption`; all per member and step, means over seeds."""


def budgets(runs: Runs) -> dict[str, list[float]]:
    """arm -> [members, the values of `COLUMNS`, seconds per step without exams]."""
    found = {}
    for arm, own in runs.items():
        totals = [consumption(run)["all"] for run in own]
        counted = [one for one in totals if one["members"] and one["steps"]]
        if not counted:
            continue
        each = [
            [one["members"]]
            + [one[key] / one["members"] / one["steps"] for key in COLUMNS.values()]
            + [one["seconds"] / one["steps"]]
            for one in counted
        ]
        found[arm] = [sum(column) / len(column) for column in zip(*each, strict=True)]
    return found


def budgets_tables(runs: Runs) -> tuple[str, str]:
    """(Markdown, CSV)."""
    header = ["arm", "members", *COLUMNS, "seconds/step"]
    rows = [
        [arm, f"{own[0]:g}", f"{own[1]:.1f}", f"{own[2]:.2f}"]
        + [f"{value:.0f}" for value in own[3:6]]
        + [f"{own[6]:.1f}"]
        for arm, own in budgets(runs).items()
    ]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows]), to_csv(header, rows)
