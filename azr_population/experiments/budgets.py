"""What a member of each arm had per step: that the comparison was fair, or where it was not."""

from collections.abc import Sequence

from azr_population.experiments.results_tables import Runs
from azr_population.runs import RunDirectory
from azr_population.runs.diagnostics import consumption
from azr_population.runs.formatting import csv_text, markdown_table
from azr_population.runs.records import config_of

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


def learning_rates(own: Sequence[RunDirectory]) -> str:
    """`teacher 0.0003, student 0.002`: of the roles that the runs have. Equal rows are no equal
    budget where those who solve learn at different rates."""
    told: dict[str, None] = {}
    for run in own:
        roles = ("teacher", "student") if config_of(run, "population", "students") else ("agent",)
        for role in roles:
            rate = config_of(run, "population", f"{role}_lr")
            if rate is not None:
                told[f"{role} {rate:g}" if isinstance(rate, float) else f"{role} {rate}"] = None
    return ", ".join(told) or "-"


def budgets_tables(runs: Runs) -> tuple[str, str]:
    """(Markdown, CSV)."""
    header = ["arm", "members", *COLUMNS, "seconds/step", "learning rates"]
    rows = [
        [arm, f"{own[0]:g}", f"{own[1]:.1f}", f"{own[2]:.2f}"]
        + [f"{value:.0f}" for value in own[3:6]]
        + [f"{own[6]:.1f}", learning_rates(runs[arm])]
        for arm, own in budgets(runs).items()
    ]
    return markdown_table(header, rows), csv_text(header, rows)
