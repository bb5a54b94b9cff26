"""Did the arms have the same budget? What their members consumed, side by side."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from azr_population.pages.comparison.inputs import Arm
from azr_population.pages.web.templates import note, small, table
from azr_population.runs.records import mean, number

Totals = dict[str, Any]
_COUNT = "{:,.0f}"


def _per(key: str, *units: str) -> Callable[[Totals], float | None]:
    """A total divided by `members`, `steps` or both."""

    def of(total: Totals) -> float | None:
        value = number(total.get(key))
        unit = math.prod(number(total.get(name)) or 0.0 for name in units)
        return None if value is None or not unit else value / unit

    return of


def _rows_per_step(total: Totals) -> float | None:
    """None for 0: no member trains on nothing, but older runs did not record their rows."""
    return number(total.get("rows_per_step")) or None


def _rows_in_all(total: Totals) -> float | None:
    """Rows of all members together, per step."""
    rows, members = _rows_per_step(total), number(total.get("members"))
    return None if rows is None or members is None else rows * members


_ROWS: tuple[tuple[str, Callable[[Totals], float | None], str], ...] = (
    ("members", _per("members"), "{:,.0f}"),
    ("steps counted", _per("steps"), "{:,.0f}"),
    ("rows trained on, per member and step", _rows_per_step, "{:,.1f}"),
    ("updates, per member and step", _per("updates", "members", "steps"), "{:,.2f}"),
    ("tokens trained on, per member and step", _per("trained_tokens", "members", "steps"), _COUNT),
    ("tokens generated, per member and step", _per("tokens", "members", "steps"), _COUNT),
    ("rollouts, per member and step", _per("rollouts", "members", "steps"), "{:,.1f}"),
    ("tokens generated, all members, per step", _per("tokens", "steps"), _COUNT),
    ("rollouts, all members, per step", _per("rollouts", "steps"), "{:,.1f}"),
    ("updates, all members, per step", _per("updates", "steps"), "{:,.2f}"),
    ("seconds per step", _per("seconds", "steps"), "{:,.2f}"),
)
"""Per step, because the kept curves of a run only have totals, and runs may differ in length."""


def fairness(arms: Sequence[Arm], step: int) -> Markup:
    """A table of means over seeds up to `step`, each with its ratio to the first arm, below a
    sentence that sums it up."""
    totals = [[run.consumption(step) for run in arm.independent] for arm in arms]
    rows = []
    for words, value_of, form in _ROWS:
        means = [mean([value_of(total) for total in seeds]) for seeds in totals]
        if all(value is None for value in means):
            continue
        cells = [_cell(value, means[0] if i else None, form) for i, value in enumerate(means)]
        rows.append([words, *cells])
    heads = ["mean over seeds", *(arm.name for arm in arms)]
    return (
        Markup('<p class="fine">{}</p>').format(_said(arms, totals))
        + table(heads, rows, "number", "budget")
        + note(
            "Exams are not counted in the seconds. Whatever else the machine did meanwhile made "
            "them longer."
        )
    )


def _said(arms: Sequence[Arm], totals: Sequence[Sequence[Totals]]) -> str:
    """Whether members of all arms trained on equally many rows, in words."""
    rows = [mean([_rows_per_step(total) for total in seeds]) for seeds in totals]
    known = [value for value in rows if value is not None]
    if len(known) < len(arms) or not all(known):
        unknown = ", ".join(a.name for a, value in zip(arms, rows, strict=True) if not value)
        return f"Rows per member cannot be compared: {unknown} did not record them."
    spread = max(known) / min(known) - 1
    if spread <= 0.05:
        said = f"Members trained on equally many rows a step on average, to within {spread:.1%}."
    else:
        least, most = (arms[known.index(pick(known))].name for pick in (min, max))
        said = (
            f"Not the same budget: a member of {most} trained on {spread:.0%} more rows in a step "
            f"than one of {least}."
        )
    whole = [mean([_rows_in_all(total) for total in seeds]) or 0.0 for seeds in totals]
    together = " and ".join(
        f"{rows / whole[0]:.1f} times as many in {arm.name}"
        for arm, rows in zip(arms[1:], whole[1:], strict=True)
    )
    said += f" All members together, that is {together} as in {arms[0].name}."
    if {"agent", "student"} <= {run.solver for arm in arms for run in arm.runs}:
        said += (
            " A single agent spends part of its rows on proposing and a student none, so at equal "
            "rows a student has solved more (the recipe ablation_rows measures what that is worth)."
        )
    return said


def _cell(value: float | None, first: float | None, form: str) -> str:
    if value is None:
        return "-"
    shown = form.format(value)
    return small(shown, f"×{value / first:.2f}") if first else shown  # noqa: RUF001
