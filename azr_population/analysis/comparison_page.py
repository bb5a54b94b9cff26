"""A comparison in the terminal, and as one HTML file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azr_population.analysis import charts, html
from azr_population.analysis.comparison import Comparison
from azr_population.analysis.inputs import ComparedArm
from azr_population.analysis.measuring import ComparedMetric
from azr_population.analysis.metrics import SHARED, own_metrics
from azr_population.analysis.seed_plan import SEEDS
from azr_population.analysis.statistics import LEVEL, band, interval_text
from azr_population.domains.metric import Metric
from azr_population.files import write_atomically, writing
from azr_population.printable import printable
from azr_population.reading.tidy import BUDGET, budget
from azr_population.runs.azr_log import MEASURED_DIFFERENTLY

SECTIONS = ("skill", "complexity", "space", "proposing", "training")


def print_comparison(compared: Comparison, console: Console | None = None) -> None:
    """The sentences, the table and the warnings."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000  # a file has no edge
    heads, rows = _table(compared)
    table = Table(box=None, pad_edge=False)
    for i, head in enumerate(heads):
        justify: Any = "left" if i == 0 else "right"
        table.add_column(Text(printable(head)), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    for pair in compared.pairs:
        console.print(Text(printable(pair.sentence)))
    if rows:
        console.print(Text(""), table, sep="\n")
    else:
        console.print("nothing to compare is recorded yet")
    for warning in compared.warnings:
        console.print(Text(f"note: {printable(warning)}"))


def print_plan(plan: Mapping[str, Any]) -> None:
    """Prints how much seeds differ, and which differences so many of them would show; `plan` is
    that of `plan_seeds`."""
    print(
        f"Seeds of one arm differ by {100 * plan['sd']:.1f} points (standard deviation; "
        f"{plan['of']}). Differences in points that are shown in about 4 of 5 comparisons:\n"
    )
    table = Table(box=None, pad_edge=False)
    for head in ("seeds in each arm", *map(str, SEEDS)):
        table.add_column(head, justify="right" if head.isdigit() else "left")
    arms = ["two arms" if r["pairs"] == 1 else f"{r['pairs']} pairs of arms" for r in plan["rows"]]
    for count, row in zip(arms, plan["rows"], strict=True):
        shown = (f"{100 * difference:.1f}" for difference in row["shown"].values())
        table.add_row(count if row["pairs"] == 1 else f"{count}, by Holm", *shown)
    Console(highlight=False).print(table)
    for count, row in zip(arms, plan["rows"], strict=True):
        needed = row["seeds_for_points"].items()
        wanted = (f"{points}: {n or 'above 200'}" for points, n in needed)
        print(f"\nSeeds in each arm for so many points, {count}: {', '.join(wanted)}", end="")
    print("\nA smaller eval adds its own chance, a longer run may spread seeds further.")


def _table(compared: Comparison) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: a value per arm, then the difference of each arm to the first one."""
    first, *others = (arm.name for arm in compared.arms)
    heads = [f"95% intervals, step {compared.step}"]
    heads += [f"{arm.name} (n={len(arm.runs)})" for arm in compared.arms]
    heads += [f"{name} - {first}" for name in others]
    rows = []
    for row in compared.rows:
        values = [_value(row, i, len(arm.runs)) for i, arm in enumerate(compared.arms)]
        against = []
        for i in range(1, len(compared.arms)):
            test, words = row.difference(i)
            text = interval_text(test, row.metric.percent, True)
            against.append(words if math.isnan(test.mean) else f"{text} {words}")
        rows.append([row.title, *values, *against])
    return heads, rows


def _value(row: ComparedMetric, arm: int, seeds: int) -> str:
    if row.measured[arm].missing:
        return row.measured[arm].missing
    text = interval_text(row.value(arm), row.metric.percent, row.metric.reduce == "change")
    n = len(row.measured[arm].samples)
    return text if n == seeds else f"{text} (n={n})"


def write_comparison(compared: Comparison, out: Path) -> Path:
    """Writes the page to `out`. Raises UserError: `out` cannot be written."""
    arms = compared.arms
    heads, rows = _table(compared)
    names = [arm.name for arm in arms]
    logs = any(run.is_log for arm in arms for run in arm.runs)
    text = html.page(
        "comparison.html.j2",
        f"{' and '.join(names[1:])} against {names[0]}",
        answers=[pair for pair in compared.pairs if pair.metric],
        refusals=[pair for pair in compared.pairs if not pair.metric],
        arms=[_about(arm) for arm in arms],
        intervals=html.embed(_intervals(compared), f"Difference to {names[0]}", "95% intervals"),
        heads=heads,
        rows=rows,
        otherwise=list(MEASURED_DIFFERENTLY.values()) if logs else [],
        warnings=compared.warnings,
        names=names,
        settings=[[row.key, row.group, *row.values] for row in compared.differing],
        budget=_budget(arms, compared.step),
        sections=[(name, shown) for name in SECTIONS if (shown := _curves(compared, name))],
    )
    with writing(f"--out {out}"):
        write_atomically(out, text)
    return out


def _about(arm: ComparedArm) -> list[str]:
    kinds = " and ".join(
        dict.fromkeys("stock AZR log" if run.is_log else "run" for run in arm.runs)
    )
    steps = sorted({run.last for run in arm.runs})
    reach = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    folders = dict.fromkeys(str(run.path.parent.name) for run in arm.runs)
    where = ", ".join(folders) if len(arm.runs) > 1 else arm.runs[0].path.name
    return [arm.name, str(len(arm.runs)), kinds, reach, where]


def _intervals(compared: Comparison) -> charts.Chart | None:
    """Differences in points of what is a share; other units would need other axes."""
    many = len(compared.arms) > 2
    lines: list[dict[str, Any]] = []
    for row in (row for row in compared.rows if row.metric.percent):
        tests = {arm.name: row.difference(i)[0] for i, arm in enumerate(compared.arms) if i}
        shown = {name: test for name, test in tests.items() if not math.isnan(test.low)}
        if many and shown:
            lines.append({"label": row.title})
        for name, test in shown.items():
            points = {key: 100 * getattr(test, key) for key in ("mean", "low", "high")}
            label, sure = name if many else row.title, test.p < LEVEL
            lines.append({"label": label, **points, "sure": sure})
    return charts.intervals(pd.DataFrame(lines), "percentage points") if lines else None


def _curves(compared: Comparison, section: str) -> list[Markup]:
    """The charts of a section that have data which varies and that no chart before has: of one
    student the best and the weakest are the mean."""
    measures = own_metrics(run for arm in compared.arms for run in arm.runs)
    figures, drawn = list[Markup](), list[pd.DataFrame]()
    for metric in (*SHARED, *measures):
        frame = _lines(compared.arms, metric) if metric.section == section else pd.DataFrame()
        if frame.empty or frame["value"].nunique() < 2 or any(map(frame.equals, drawn)):
            continue
        drawn.append(frame)
        chart = charts.curves(frame, unit=metric.unit, percent=metric.percent, dashes=True)
        figures.append(html.embed(chart, metric.title, metric.about))
    return figures


def _lines(arms: Sequence[ComparedArm], metric: Metric) -> pd.DataFrame:
    """Thick lines with bands of the arms, thin ones of their seeds."""
    parts = []
    for arm in arms:
        curves = {str(run.path): points for run in arm.runs if len(points := run.curve(metric))}
        if not curves:
            continue
        main = band(curves, metric.least, metric.most).assign(series=arm.name, member=None)
        parts.append(main)
        if len(curves) > 1:
            parts += [
                line.rename("value").rename_axis("step").reset_index()
                .assign(series=arm.name, member=f"{arm.name}, {seed}")
                for seed, line in curves.items()
            ]  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _budget(arms: Sequence[ComparedArm], step: int) -> list[list[str]]:
    """Rows with the members' consumption a step: means over seeds, and ratios to the first arm."""
    columns = []
    for arm in arms:
        parts = []
        for run in arm.runs:
            used = budget(run.of_run, run.members, step)
            seconds = used.pop("seconds")
            part: dict[str, float] = {"members": run.members}
            part |= {f"{BUDGET[key]}, per member": value for key, value in used.items()}
            for key in ("generated_tokens", "rollouts"):
                part[f"{BUDGET[key]}, all members"] = used[key] * run.members
            parts.append(part | {"seconds, without evals": seconds})
        columns.append(pd.DataFrame(parts).mean())
    table = pd.concat(columns, axis=1).dropna(how="all")
    return [
        [words, *(_ratio(v, by_arm.iloc[0], i) for i, v in enumerate(by_arm))]
        for words, by_arm in table.iterrows()
    ]


def _ratio(value: float, first: float, arm: int) -> str:
    if math.isnan(value):
        return "-"
    shown = f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"
    return f"{shown} (×{value / first:.2f})" if arm and first > 0 else shown  # noqa: RUF001
