"""The comparison as one HTML file: the verdict first, then what differs, budgets and curves."""

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from markupsafe import Markup

from azr_population.files import write_atomically, writing
from azr_population.pages.comparison.azr_log import OTHERWISE
from azr_population.pages.comparison.benchmarks_table import benchmarks
from azr_population.pages.comparison.compared import Compared
from azr_population.pages.comparison.curves import DASHES, curves
from azr_population.pages.comparison.fairness import fairness
from azr_population.pages.comparison.inputs import Arm, are_mixed
from azr_population.pages.comparison.verdict_html import (
    forest,
    has_intervals,
    verdict_tables,
    verdict_words,
)
from azr_population.pages.web.document import document
from azr_population.pages.web.still import without_constants
from azr_population.pages.web.templates import table

_SCRIPTS = ("drawing", "layout", "saving", "lines", "intervals", "compare")

_BRACKETS = "In brackets are 95% intervals over seeds."
_WITH_INTERVALS = (
    "Small figures are 95% intervals over seeds (Student's t; Welch's for differences). An "
    "interval that holds zero shows no difference; it does not show that there is none. One in "
    "twenty misses by chance, and these are not corrected for their number. The best of several "
    "members looks good by luck too, because the exam itself picks it. Rows of the same measure "
    "are drawn to the same scale."
)
_WITHOUT = (
    "Of an arm with one seed nobody can tell how far another seed would have come out: these "
    "differences may all be chance."
)


def write_comparison(compared: Compared, out: Path) -> Path:
    """Writes the page to `out`. Raises UserError: `out` cannot be written."""
    arms, step, rows, differing = compared.arms, compared.step, compared.rows, compared.differing
    drawn, constant = without_constants(curves(arms))
    data = {
        "steps": max((run.last for arm in arms for run in arm.runs), default=0),
        "charts": drawn,
        "constant": constant,
        "verdicts": [verdict.to_json() for verdict in rows],
    }
    page = document(
        "compare.html",
        _SCRIPTS,
        data,
        title=f"{' and '.join(arm.name for arm in arms[1:])} against {arms[0].name}",
        written=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        forest=forest(arms, rows, step),
        words=verdict_words(arms, rows, step),
        caveat=differing.warnings[0] if differing.warnings else "",
        others=f" ({more} more)" if (more := len(differing.warnings) - 1) > 0 else "",
        brackets=_BRACKETS if has_intervals(rows) else "",
        note=_WITH_INTERVALS if has_intervals(rows) else _WITHOUT,
        arms=_arms(arms),
        verdicts=verdict_tables(arms, rows),
        otherwise=_otherwise(arms, "solve_rate", "validity"),
        differing=differing,
        settings=table(
            ["setting", "belongs to", *(arm.name for arm in arms)],
            [[line.key, line.group, *line.values] for line in differing.rows],
        ),
        benchmarks=benchmarks(arms),
        fairness=fairness(arms, step) + _otherwise(arms, "seconds"),
        curves=_of_curves(arms),
    )
    with writing(f"--out {out}"):
        write_atomically(out, page)
    return out


def _arms(arms: Sequence[Arm]) -> list[dict[str, Any]]:
    """The arms, with the line styles that they have in the figures."""
    shown = []
    for i, arm in enumerate(arms):
        kind = " and ".join(dict.fromkeys(run.kind for run in arm.runs))
        steps = sorted({run.last for run in arm.runs})
        reach = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
        cells = [len(arm.independent), kind, reach, "; ".join(_folders(arm))]
        shown.append({"name": arm.name, "dash": DASHES[i % len(DASHES)], "cells": cells})
    return shown


def _folders(arm: Arm) -> list[str]:
    """Where the arm's runs lie: `runs/4t4s: seed_1, seed_2`."""
    folders: dict[str, list[str]] = {}
    for run in arm.runs:
        folders.setdefault(str(run.path.parent), []).append(run.path.name)
    return [
        str(Path(folder, *names)) if len(names) == 1 else f"{folder}: {', '.join(names)}"
        for folder, names in folders.items()
    ]


def _of_curves(arms: Sequence[Arm]) -> str:
    """How to read the curves: without a second seed there is no band."""
    seeds = {len(arm.independent) for arm in arms}
    if seeds == {1}:
        return "Each line is one run. An arm with a single seed has no mean and no band."
    alone = " An arm with a single seed has a line and no band." if 1 in seeds else ""
    return f"Thick lines are means over an arm's seeds with 95% bands, thin lines the seeds.{alone}"


def _otherwise(arms: Sequence[Arm], *measures: str) -> Markup:
    """What a stock log measures differently under these names, if one is compared with our runs."""
    if not are_mixed(arms):
        return Markup()
    told = "; ".join(OTHERWISE[name] for name in measures)
    return Markup('<p class="fine">A stock log measures differently: {}.</p>').format(told)
