"""What members achieve on benchmarks, where `azr-population evaluate` was run on the runs."""

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from azr_population.pages.comparison.inputs import Arm
from azr_population.pages.web.templates import note, small, table


def benchmarks(arms: Sequence[Arm]) -> Markup:
    """A section with a table for each k of pass@k; '' where no run was evaluated."""
    lines = list(_lines(arms))
    ks = sorted({line["k"] for _, _, line in lines})
    tables = [_table([entry for entry in lines if entry[2]["k"] == k], k) for k in ks]
    if not tables:
        return Markup()
    how = (
        "Percent, with 95% bootstrap intervals over problems. Figures of other prompts, problems "
        "or limits of tokens cannot be compared; docs/evaluation.md says what they are made of."
    )
    return Markup('<section id="benchmarks"><h2>Benchmarks</h2>{}{}</section>').format(
        Markup("").join(tables), note(how)
    )


Line = tuple[str, bool, dict[str, Any]]
"""Arm and run, whether its completions are greedy, a row of its figures."""


def _lines(arms: Sequence[Arm]) -> Iterator[Line]:
    for arm in arms:
        for run in arm.runs:
            figures = run.figures
            label = arm.name if len(arm.runs) == 1 else f"{arm.name}/{run.name}"
            for line in figures.get("lines", ()):
                yield label, figures.get("temperature") == 0, line


def _table(lines: Sequence[Line], k: int) -> Markup:
    titles = list(dict.fromkeys(title for _, _, line in lines for title in line["cells"]))
    rows = [
        [f"{run}: {line['model']}", *(_cell(line["cells"].get(title)) for title in titles)]
        for run, _, line in lines
    ]
    label = f"pass@{k}{', greedy' if all(greedy for _, greedy, _ in lines) else ''}"
    return table([label, *titles], rows, "number", label)


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "-"
    value, low, high = (100 * float(cell[key]) for key in ("value", "low", "high"))
    return small(f"{value:.1f}", f"{low:.1f} to {high:.1f}")
