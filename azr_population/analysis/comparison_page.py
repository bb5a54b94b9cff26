"""A comparison in the terminal, and as one HTML file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from azr_population.analysis import charts, html
from azr_population.analysis.azr_log import OTHERWISE
from azr_population.analysis.comparison import ComparedMetric, Comparison
from azr_population.analysis.inputs import ComparedArm, ComparedRun
from azr_population.analysis.metrics import Metric, metrics_for
from azr_population.analysis.statistics import Estimate, band, interval_text
from azr_population.files import write_atomically, writing
from azr_population.printable import printable

SECTIONS = ("skill", "complexity", "space", "proposing", "training")
_BUDGET = (
    ("trained_samples", "samples trained on", True),
    ("updates", "updates", True),
    ("trained_tokens", "tokens trained on", True),
    ("generated_tokens", "tokens generated", True),
    ("rollouts", "rollouts", True),
    ("generated_tokens", "tokens generated", False),
    ("rollouts", "rollouts", False),
)
"""Of `total/...`: what it counts, and whether it is told per member or of all members."""


def print_comparison(compared: Comparison, console: Console | None = None) -> None:
    """The sentences, the table and the warnings."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)  # a file has no edge
    parts: list[Any] = [Text(printable(pair.sentence)) for pair in compared.pairs]
    if compared.rows:
        table = Table(box=None, pad_edge=False)
        heads, rows = _table(compared)
        for i, head in enumerate(heads):
            table.add_column(Text(printable(head)), justify="left" if i == 0 else "right")
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        parts += [Text(""), table]
    else:
        parts.append(Text("nothing to compare is recorded yet"))
    notes = [f"note: {printable(warning)}" for warning in compared.differing.warnings]
    console.print(Group(*parts, *map(Text, notes)))


def _table(compared: Comparison) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: a value per arm, then the difference of each arm to the first one."""
    first, *others = (arm.name for arm in compared.arms)
    heads = [f"95% intervals, step {compared.step}", first, *others]
    heads += [f"{name} - {first}" for name in others]
    rows = []
    for row in compared.rows:
        values = [_value(row, i) for i in range(len(compared.arms))]
        against = []
        for i in range(1, len(compared.arms)):
            test, words = compared.against_first(row, i)
            text = interval_text(test, row.metric.percent, True)
            against.append(words if math.isnan(test.mean) else f"{text} {words}")
        rows.append([row.title, *values, *against])
    return heads, rows


def _value(row: ComparedMetric, arm: int) -> str:
    if row.missing[arm]:
        return row.missing[arm]
    return interval_text(row.value(arm), row.metric.percent, row.is_change)


def write_comparison(compared: Comparison, out: Path) -> Path:
    """Writes the page to `out`. Raises UserError: `out` cannot be written."""
    arms = compared.arms
    heads, rows = _table(compared)
    names = [arm.name for arm in arms]
    settings = [[row.key, row.group, *row.values] for row in compared.differing.rows]
    logs = any(run.is_log for arm in arms for run in arm.runs)
    text = html.page(
        "comparison.html.j2",
        f"{' and '.join(names[1:])} against {names[0]}",
        sentences=[pair.sentence for pair in compared.pairs],
        arms=html.table(["arm", "seeds", "what", "steps", "where"], [_about(arm) for arm in arms]),
        intervals=html.embed(_intervals(compared), f"Difference to {names[0]}", "95% intervals"),
        table=html.table(heads, rows, "number", "comparison") if rows else Markup(),
        otherwise=list(OTHERWISE.values()) if logs else [],
        warnings=compared.differing.warnings,
        settings=html.table(["setting", "group", *names], settings) if settings else Markup(),
        budget=_budget(arms, compared.step),
        benchmarks=_benchmarks(arms),
        sections=[(name, shown) for name in SECTIONS if (shown := _curves(compared, name))],
    )
    with writing(f"--out {out}"):
        write_atomically(out, text)
    return out


def _about(arm: ComparedArm) -> list[str]:
    kinds = " and ".join(dict.fromkeys(run.kind for run in arm.runs))
    steps = sorted({run.last for run in arm.runs})
    reach = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    folders = dict.fromkeys(str(run.path.parent.name) for run in arm.runs)
    where = ", ".join(folders) if len(arm.runs) > 1 else arm.runs[0].path.name
    return [arm.name, str(len(arm.independent)), kinds, reach, where]


def _intervals(compared: Comparison) -> charts.Chart | None:
    """Differences in points of what is a share; other units would need other axes."""
    many = len(compared.arms) > 2
    lines = []
    for row in compared.rows:
        for i, arm in enumerate(compared.arms[1:], start=1):
            test, _ = compared.against_first(row, i)
            if row.metric.percent and not math.isnan(test.low):
                label = f"{row.title} · {arm.name}" if many else row.title
                sure = test.low > 0 or test.high < 0
                points = {name: 100 * getattr(test, name) for name in ("mean", "low", "high")}
                lines.append({"label": label, **points, "sure": sure})
    return charts.intervals(pd.DataFrame(lines), "percentage points") if lines else None


def _curves(compared: Comparison, section: str) -> list[Markup]:
    """The charts of a section that have data which varies."""
    domains = {run.domain for arm in compared.arms for run in arm.runs if run.domain is not None}
    figures = []
    for metric in metrics_for(domains):
        frame = _lines(compared.arms, metric) if metric.section == section else pd.DataFrame()
        if frame.empty or frame["value"].nunique() < 2:
            continue
        chart = charts.curves(frame, unit=metric.unit, percent=metric.percent, dashes=True)
        figures.append(html.embed(chart, metric.title, metric.about))
    return figures


def _lines(arms: Sequence[ComparedArm], metric: Metric) -> pd.DataFrame:
    """Thick lines with bands of the arms, thin ones of their seeds."""
    parts = []
    for arm in arms:
        curves = {
            run.path.name: points for run in arm.independent if len(points := run.curve(metric))
        }
        if not curves:
            continue
        main = band(curves).assign(series=arm.name, member=None)
        main["low"] = main["low"].clip(lower=metric.least)
        main["high"] = main["high"].clip(upper=metric.most)
        parts.append(main)
        if len(curves) > 1:
            parts += [
                pd.DataFrame({"step": line.index, "value": line.to_numpy()}).assign(
                    series=arm.name, member=f"{arm.name}, {seed}"
                )
                for seed, line in curves.items()
            ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _budget(arms: Sequence[ComparedArm], step: int) -> Markup:
    """What the members consumed, a step: means over seeds, and the ratio to the first arm."""
    members = [_mean([float(_members(run)) for run in arm.independent]) for arm in arms]
    rows: list[tuple[str, list[float | None]]] = [("members", members)]
    for name, words, per_member in _BUDGET:
        values = [_per_step(arm, f"total/{name}", step, per_member) for arm in arms]
        if any(value is not None for value in values):
            rows.append((f"{words}, {'per member' if per_member else 'all members'}", values))
    rows.append(("seconds, without evals", [_seconds(arm, step) for arm in arms]))
    shown = [
        [words, *(_ratio(v, of_arm[0], i) for i, v in enumerate(of_arm))] for words, of_arm in rows
    ]
    return html.table(["per step, mean over seeds", *(arm.name for arm in arms)], shown, "number")


def _ratio(value: float | None, first: float | None, place: int) -> str:
    if value is None:
        return "-"
    shown = f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"
    return f"{shown} (×{value / first:.2f})" if place and first else shown  # noqa: RUF001


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _per_step(arm: ComparedArm, metric: str, step: int, per_member: bool) -> float | None:
    def of(run: ComparedRun) -> float | None:
        points = run.curve(Metric(metric, ""))
        points = points[points.index <= step]
        members = _members(run) if per_member else 1
        return float(points.mean()) / members if len(points) and members else None

    return _mean([of(run) for run in arm.independent])


def _members(run: ComparedRun) -> int:
    """Members of a run; a log has one."""
    settings = run.settings
    count = sum(int(settings.get(f"population.{of}") or 0) for of in ("teachers", "students"))
    return count or 1


def _seconds(arm: ComparedArm, step: int) -> float | None:
    def of(run: ComparedRun) -> float | None:
        whole = run.curve(Metric("time/step", ""))
        rest = whole.sub(run.curve(Metric("time/eval", "")), fill_value=0.0)
        rest = rest[rest.index <= step]
        return float(rest.mean()) if len(rest) else None

    return _mean([of(run) for run in arm.independent])


def _benchmarks(arms: Sequence[ComparedArm]) -> Markup:
    """Benchmark figures of the models, as `azr-population benchmark` printed them; percent."""
    lines = [
        (arm.name if len(arm.runs) == 1 else f"{arm.name}/{run.path.name}", line)
        for arm in arms
        for run in arm.runs
        for line in run.figures.get("lines", ())
    ]
    titles = list(dict.fromkeys(title for _, line in lines for title in line["cells"]))
    rows = [
        [
            f"{name}: {line['model']}, pass@{line['k']}",
            *(_cell(line["cells"].get(t)) for t in titles),
        ]
        for name, line in lines
    ]
    return html.table(["percent", *titles], rows, "number", "benchmarks") if rows else Markup()


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "-"
    value, low, high = (float(cell[name]) for name in ("value", "low", "high"))
    return interval_text(Estimate(value, low, high, (1,)), percent=True)
