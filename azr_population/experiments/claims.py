"""A recipe's figures: each has for a title the sentence that its numbers make."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from azr_population.analysis import charts
from azr_population.analysis.children import ALL, LAST, SPAN, YOUNG, recovery
from azr_population.analysis.metrics import all_metrics, metric_named
from azr_population.analysis.statistics import (
    REDUCERS,
    Estimate,
    band,
    interval,
    interval_text,
)
from azr_population.analysis.svg import to_svg
from azr_population.experiments.recipes import Arms, Chart
from azr_population.runs import tidy
from azr_population.runs.records import ROLES
from azr_population.runs.run_data import RunData

Tables = Mapping[str, Mapping[str, pd.DataFrame]]
"""arm -> seed -> the tidy table of a run, without its members."""
STYLES = {
    "single": (charts.CATEGORIES[0], [1, 0]),
    "1t1s": (charts.CATEGORIES[1], [6, 3]),
    "4t4s": (charts.CATEGORIES[2], [2, 2]),
}
"""Colour and dashes of the paper's arms, alike in all figures; others take what is left."""
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3])
_AGAIN = (*_DASHES[1:], _DASHES[0])
"""The seventh colour is near the first, so that it is not solid too."""
_WIDTH = 72
"""Characters of a line above a figure."""


def curve(table: pd.DataFrame, name: str, role: str = "") -> pd.Series:
    """A metric of one run over its steps; `role` as in `TableRow`. Empty if it is not recorded."""
    if role == "mean":
        curves = [points for role in ROLES if len(points := tidy.curve(table, name, (role,)))]
        return pd.concat(curves, axis=1).mean(axis=1) if curves else pd.Series(dtype=float)
    # Not declared: a stratum of the eval, or a metric of a domain that does not ship.
    return tidy.curve(table, all_metrics().get(name, name), (role,) if role else ())


def _up_to(
    steps: int, of_arm: Mapping[str, pd.DataFrame], metric: str, role: str
) -> dict[str, pd.Series]:
    """The `curve` of each seed that has one, up to the arm's length in steps."""
    curves = {seed: curve(table, metric, role) for seed, table in of_arm.items()}
    return {seed: points[points.index <= steps] for seed, points in curves.items() if len(points)}


def is_percent(metric: str) -> bool:
    """Whether a metric is a fraction, which is shown in percent."""
    definition = metric_named(metric)
    return definition is not None and definition.percent


def level_of(metric: str, reduce: str, values: Mapping[str, float]) -> Estimate:
    """The mean of an arm's seeds; its interval ends where no value of the metric can lie."""
    definition = metric_named(metric)
    return interval(values).within(*definition.bounds(reduce)) if definition else interval(values)


def draw_figure(
    chart: Chart, tables: Tables, lengths: Mapping[str, int], arms: Arms, path: Path
) -> tuple[pd.DataFrame, str]:
    """Draws the chart to `path`; returns its data and its sentence, both empty where no run has the
    metric."""
    if chart.ratio:
        return _ratios(chart, tables, lengths, arms, path)
    lines: dict[str, dict[str, pd.Series]] = {}
    arm_of: dict[str, str] = {}
    for arm, of_arm in tables.items():
        for role in chart.roles:
            if by_seed := _up_to(lengths[arm], of_arm, chart.metric, role):
                name = arms.find(arm).title + (f", {role}s" if role else "")
                lines[name], arm_of[name] = by_seed, arm
    if not lines:
        return pd.DataFrame(), ""
    percent = is_percent(chart.metric)
    estimates = {}
    for name, of_name in lines.items():
        steps = lengths[arm_of[name]]
        values = {seed: REDUCERS[chart.reduce](points, steps) for seed, points in of_name.items()}
        measured = {s: v for s, v in values.items() if not math.isnan(v)}
        estimates[name] = level_of(chart.metric, chart.reduce, measured)
    sentence = _sentence(chart, estimates, percent)
    frame = pd.concat([band(of).assign(series=name) for name, of in lines.items()])
    if percent:  # a bound beyond what is possible says nothing
        frame[["low", "high"]] = frame[["low", "high"]].clip(0.0, 1.0)
    styles = _styles(arm_of)
    drawing = charts.curves(
        frame.reset_index(drop=True),
        {name: style[0] for name, style in styles.items()},
        unit=chart.unit,
        percent=percent,
        dashes=[style[1] for style in styles.values()],
    )
    counts = ", ".join(f"{name} {len(of)}" for name, of in lines.items())
    note = f"Lines: means over seeds ({counts}); bands: 95% intervals of the mean."
    to_svg(drawing, path, *_heading(chart, sentence, note))
    return frame, sentence


def births_figure(
    chart: Chart, runs: Mapping[str, Mapping[str, RunData]], path: Path
) -> tuple[pd.DataFrame, str]:
    """As `figure`, of the children of all arms: a line for each operator."""
    of_arms = [run for of_arm in runs.values() for run in of_arm.values()]
    frame = recovery(of_arms, chart.metric, chart.roles[0])
    if not len(frame):
        return frame, ""
    percent = is_percent(chart.metric)
    said = []
    for step, when in ((0, "the replaced"), (SPAN, "children at first"), (LAST, "at the end")):
        for line in frame[(frame["step"] == step) & (frame["operator"] == ALL)].itertuples():
            test = Estimate(line.value, line.low, line.high, (line.seeds,))
            text = interval_text(test, percent, signed=True)
            said.append(f"{when} {text} ({line.births} births, {line.seeds} seeds)")
    sentence = f"{chart.title}: {', '.join(said)}"
    born = frame.groupby("operator", sort=False)["births"].max()
    names = {operator: f"{operator}, n = {n}" for operator, n in born.items()}
    lines = frame.assign(series=frame["operator"].map(names))
    lines[["low", "high"]] = lines[["low", "high"]].where(lines["operator"] == ALL)
    drawing = charts.curves(
        lines.drop(columns="seeds"),
        dict(zip(names.values(), charts.CATEGORIES, strict=False)),
        unit=chart.unit,
        percent=percent,
    )
    note = (
        f"Means over the {SPAN} steps up to this one after a birth, less the other "
        f"{chart.roles[0]}s that are older than {YOUNG} steps; step 0: the member that was "
        "replaced. n: births. Band: 95% over seeds. Children that were replaced are in no later "
        "point."
    )
    to_svg(drawing, path, *_heading(chart, sentence, note))
    return frame, sentence


def _styles(arm_of: Mapping[str, str]) -> dict[str, tuple[str, list[int]]]:
    """Colour and dashes by series; two roles of an arm have two dashes."""
    unused = [
        (colour, dash)
        for colour, dash in zip(charts.CATEGORIES, _DASHES + _AGAIN, strict=True)
        if not any(colour == taken for taken, _ in STYLES.values())
    ]
    styles: dict[str, tuple[str, list[int]]] = {}
    of_arms: dict[str, tuple[str, list[int]]] = {}
    for name, arm in arm_of.items():
        again = arm in of_arms
        if not again:
            of_arms[arm] = STYLES[arm] if arm in STYLES else unused.pop(0)
        colour, dash = of_arms[arm]
        styles[name] = (colour, [2, 5] if again else dash)
    return styles


def _sentence(chart: Chart, estimates: Mapping[str, Estimate], percent: bool) -> str:
    """`AST nodes: down 1.5 with the single agent; up 1.3 with 1T+1S`, or the levels at the end."""
    if chart.reduce != "change":
        when = "at the end" if chart.reduce == "last" else "late"
        levels = [f"{interval_text(e, percent)} {_with(name)}" for name, e in estimates.items()]
        return f"{chart.title} {when}: {'; '.join(levels)}"
    said: dict[str, list[str]] = {"moved": [], "no change shown": [], "no interval": []}
    for name, test in estimates.items():
        size = f"{100 * abs(test.mean):.1f} points" if percent else _short(abs(test.mean))
        if math.isnan(test.low):
            said["no interval"].append(_with(name))
        elif test.low <= 0 <= test.high:
            said["no change shown"].append(_with(name))
        else:
            said["moved"].append(f"{'up' if test.mean > 0 else 'down'} {size} {_with(name)}")
    parts = said.pop("moved")
    parts += [f"{words} {_joined(names)}" for words, names in said.items() if names]
    return f"{chart.title}: {'; '.join(parts)}"


def _with(name: str) -> str:
    return f"with {'the ' if name.startswith('single') else ''}{name}"


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _heading(chart: Chart, sentence: str, note: str) -> tuple[list[str], list[str]]:
    """The lines of the title and those below it."""
    below = [note, f"The paper (7B, 200 steps): {chart.paper}." if chart.paper else ""]
    lines: Iterable[str] = (line for text in below for line in textwrap.wrap(text, _WIDTH + 8))
    return textwrap.wrap(sentence, _WIDTH - 8), list(lines)


def _ratios(
    chart: Chart, tables: Tables, lengths: Mapping[str, int], arms: Arms, path: Path
) -> tuple[pd.DataFrame, str]:
    """A bar for each arm, as a multiple of the first arm's value of the same seed."""
    values = {
        arm: {
            seed: REDUCERS[chart.reduce](points, lengths[arm])
            for seed, points in _up_to(lengths[arm], of_arm, chart.metric, chart.roles[0]).items()
        }
        for arm, of_arm in tables.items()
    }
    first = next(iter(values.values()), {})
    if not first:
        return pd.DataFrame(), ""
    rows, said = [], []
    for arm, of_arm in values.items():
        title = arms.find(arm).title
        test = interval({s: v / first[s] for s, v in of_arm.items() if first.get(s)})
        mean = interval_text(Estimate(interval(of_arm).mean, math.nan, math.nan, (1,)))
        rows.append(
            {"series": f"{title}, n = {test.n}", "value": test.mean, "low": test.low}
            | {"high": test.high, "text": f"{mean} {chart.unit}"}
        )
        if of_arm is not first:
            said.append(f"{title} has {interval_text(test)} times")
    base = arms.find(next(iter(values))).title
    sentence = f"{chart.title}: {', '.join(said)} that of the {base}"
    frame = pd.DataFrame(rows)
    note = "Bars: means over seeds of the ratio; lines: 95% intervals."
    drawing = _bars(frame, "times the single agent", chart.mark, "the paper, 7B on GPUs")
    to_svg(drawing, path, *_heading(chart, sentence, note))
    return frame, sentence


def _bars(
    frame: pd.DataFrame, title: str, mark: float | None = None, says: str = ""
) -> charts.Chart:
    """Horizontal bars with their intervals: `series`, `value`, `low`, `high` and a `text` beside
    each; `mark` is a value to hold them against, as a line that `says` whose it is."""
    names = list(frame["series"])
    y = alt.Y("series:N", sort=names, title=None, axis=alt.Axis(labelLimit=300))
    base = alt.Chart(frame).encode(y=y)
    layers: list[Any] = [
        base.mark_bar(size=18, opacity=0.5, color=charts.CATEGORIES[0]).encode(
            x=alt.X("value:Q", title=title, axis=alt.Axis(grid=True)).scale(zero=True)
        ),
        base.mark_rule(strokeWidth=2, color=charts.INK).encode(x="low:Q", x2="high:Q"),
        base.mark_text(align="left", dx=6, dy=-13, color=charts.INK, fontSize=13).encode(
            x=alt.value(0), text="text:N"
        ),
    ]
    if mark is not None:
        at = alt.Chart(pd.DataFrame({"mark": [mark], "text": [f"{says}: {mark:g}"]}))
        layers.append(
            at.mark_rule(color=charts.ROLES["teacher"], strokeDash=[4, 3]).encode(x="mark:Q")
        )
        layers.append(
            at.mark_text(align="left", dx=5, fontSize=13, color=charts.ROLES["teacher"]).encode(
                x="mark:Q", y=alt.value(8), text="text:N"
            )
        )
    chart: charts.Chart = alt.layer(*layers, width="container", height=60 * len(frame))
    return chart
