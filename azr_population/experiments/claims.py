"""A recipe's figures: each has for a title what its numbers show, and the numbers at its lines."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from azr_population.analysis import charts
from azr_population.analysis.children import ALL, LAST, SPAN, YOUNG, recovery
from azr_population.analysis.metrics import MetricSamples, all_metrics, metric_named
from azr_population.analysis.sentences import (
    grouped_by_sign,
    joined,
    sign_word,
    with_article,
)
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
_TITLE, _SMALL = 58, 74
"""Characters of a line above a figure, of the title and below it."""
_PLOT = 330
"""Pixels of a plot beside which the lines' labels stand."""


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


def draw_figure(
    chart: Chart,
    tables: Tables,
    lengths: Mapping[str, int],
    arms: Arms,
    path: Path,
    results: pd.DataFrame | None = None,
) -> tuple[pd.DataFrame, str]:
    """Draws the chart to `path`; returns its data and its title, both empty where no run has the
    metric. `results` is the recipe's table, which says what differs from the first arm."""
    if chart.ratio:
        return _ratios(chart, tables, lengths, arms, path)
    lines: dict[str, dict[str, pd.Series]] = {}
    for arm, of_arm in tables.items():
        if by_seed := _up_to(lengths[arm], of_arm, chart.metric, chart.role):
            lines[arm] = by_seed
    if not lines:
        return pd.DataFrame(), ""
    percent = is_percent(chart.metric)
    estimates = {}
    for arm, of_arm in lines.items():
        values = {seed: REDUCERS[chart.reduce](of, lengths[arm]) for seed, of in of_arm.items()}
        measured = {s: v for s, v in values.items() if not math.isnan(v)}
        samples = MetricSamples(metric_named(chart.metric), chart.reduce, {arm: measured})
        estimates[arm] = samples.value(arm)
    titles = {arm: arms.find(arm).title for arm in lines}
    frame = pd.concat([band(of).assign(series=titles[arm]) for arm, of in lines.items()])
    if percent:  # a bound beyond what is possible says nothing
        frame[["low", "high"]] = frame[["low", "high"]].clip(0.0, 1.0)
    changes = chart.reduce == "change"
    palette = dict(zip(arms.arms, itertools.cycle(charts.CATEGORIES), strict=False))
    colours = {titles[arm]: palette[arm] for arm in lines}
    ends = {titles[arm]: interval_text(e, percent, changes) for arm, e in estimates.items()}
    shown = frame
    if chart.mark is not None:
        reference = {"series": chart.mark_label, "value": chart.mark}
        ended = pd.DataFrame([{"step": step, **reference} for step in (1, frame["step"].max())])
        shown, colours[chart.mark_label] = pd.concat([frame, ended]), charts.SOFT
        ends[chart.mark_label] = f"{100 * chart.mark:g}%" if percent else f"{chart.mark:g}"
    drawing = charts.curves(
        shown.reset_index(drop=True), colours, unit=chart.unit, percent=percent, ends=ends
    )
    if changes:
        against, signs = "", {arm: test.sign() for arm, test in estimates.items()}
    elif chart.mark is not None:
        against = with_article(chart.mark_label)
        signs = {arm: test.sign(chart.mark) for arm, test in estimates.items()}
    else:
        first, signs = next(iter(lines)), _signs(chart, results, list(lines))
        against = with_article(titles[first])
    claim = _claim(chart, signs, titles, against)
    number = {"change": "change, late less early", "last": "at the end"}.get(chart.reduce, "late")
    note = f"Lines: means over seeds; bands: 95% intervals. Numbers: {number}, with 95% intervals."
    heading = _heading(chart, claim, note, [len(of) for of in lines.values()])
    to_svg(drawing.properties(width=_PLOT), path, *heading)
    return frame, claim


def births_figure(
    chart: Chart, runs: Mapping[str, Mapping[str, RunData]], path: Path
) -> tuple[pd.DataFrame, str]:
    """Draws the children of all arms, a line for each operator; returns as `draw_figure` does."""
    of_arms = [run for of_arm in runs.values() for run in of_arm.values()]
    frame = recovery(of_arms, chart.metric, chart.role)
    if not len(frame):
        return frame, ""
    percent = is_percent(chart.metric)
    everyone = frame[frame["operator"] == ALL].set_index("step")
    periods: dict[str, list[str]] = {}
    for step, period in ((SPAN, f"in the first {SPAN} steps"), (LAST, f"by step {LAST}")):
        for row in everyone[everyone.index == step].itertuples():
            sign = Estimate(row.value, row.low, row.high, (row.seeds,)).sign()
            periods.setdefault(sign_word(sign, "level"), []).append(period)
    role = chart.role
    claim = f"{chart.title}, children beside other {role}s: "
    claim += ", ".join(f"{word} {joined(names)}" for word, names in periods.items())
    end = everyone.iloc[-1]
    number = Estimate(end.value, end.low, end.high, (end.seeds,))
    operators = frame["operator"].where(frame["operator"] != ALL)
    lines = frame.assign(series="all children", member=operators)
    lines[["low", "high"]] = lines[["low", "high"]].where(operators.isna())
    drawing = charts.curves(
        lines.drop(columns=["seeds", "operator"]),
        {"all children": charts.ROLES[role]},
        unit=chart.unit,
        percent=percent,
        ends={"all children": interval_text(number, percent, signed=True)},
    )
    born = frame[frame["step"] == SPAN].set_index("operator")["births"]
    note = (
        f"Children less the other {role}s that are older than {YOUNG} steps, means over the {SPAN} "
        f"steps up to this one after the birth ({born.get(ALL, 0)} births; thin: one operator "
        "each). Step 0: the member that was replaced. Band and number: 95% over seeds. Children "
        "that were replaced are in no later point."
    )
    heading = _heading(chart, claim, note, [int(everyone["seeds"].max())])
    to_svg(drawing.properties(width=_PLOT), path, *heading)
    return frame, claim


def _signs(chart: Chart, results: pd.DataFrame | None, arms: list[str]) -> dict[str, int | None]:
    """The signs of the arms' differences to the first in the recipe's table; empty without them."""
    first, *others = arms
    table = pd.DataFrame(columns=["metric"]) if results is None else results
    table = table[table["metric"] == chart.metric]
    if f"minus_{first}_mean" not in table:
        return {}
    same = (table["reduce"] == chart.reduce) & (table["role"] == chart.role)
    of_arm = {row["arm"]: row for row in table[same].to_dict("records")}
    mean = f"minus_{first}_mean"
    return {
        arm: int(math.copysign(of_arm[arm]["differs"], of_arm[arm][mean]))
        for arm in others
        if arm in of_arm
    }


def _claim(
    chart: Chart, signs: Mapping[str, int | None], titles: Mapping[str, str], against: str
) -> str:
    """The chart's own claim where the intervals bear it out, or which arms moved or differ."""
    if chart.claim and chart.claim.holds(signs):
        return chart.claim.text
    when = {"change": "", "last": " at the end"}.get(chart.reduce, " late")
    title = f"{chart.title}{when}"
    if not signs:
        return title
    title += f", against {against}" if against else ""
    kind = "change" if chart.reduce == "change" else "level"
    return f"{title}: {grouped_by_sign({titles[arm]: s for arm, s in signs.items()}, kind)}"


def _heading(
    chart: Chart, claim: str, note: str, counts: Sequence[int]
) -> tuple[list[str], list[str]]:
    """The lines of the title, which ends with the seeds of an arm, and those below it."""
    seeds = " to ".join(map(str, sorted({min(counts), max(counts)})))
    below = [note, f"The paper (7B, 200 steps): {chart.paper}." if chart.paper else ""]
    lines: Iterable[str] = (line for text in below for line in textwrap.wrap(text, _SMALL))
    count = f"(n = {seeds} seeds)".replace(" ", "\N{NO-BREAK SPACE}")
    return textwrap.wrap(f"{claim} {count}", _TITLE), list(lines)


def _ratios(
    chart: Chart, tables: Tables, lengths: Mapping[str, int], arms: Arms, path: Path
) -> tuple[pd.DataFrame, str]:
    """A bar for each arm, as a multiple of the first arm's value of the same seed."""
    values = {
        arm: {
            seed: REDUCERS[chart.reduce](points, lengths[arm])
            for seed, points in _up_to(lengths[arm], of_arm, chart.metric, chart.role).items()
        }
        for arm, of_arm in tables.items()
    }
    first = next(iter(values.values()), {})
    base = arms.find(next(iter(values))).title if values else ""
    if not first:
        return pd.DataFrame(), ""
    rows: list[dict[str, Any]] = []
    signs: dict[str, int | None] = {}
    for arm, of_arm in values.items():
        title = arms.find(arm).title
        test = interval({s: v / first[s] for s, v in of_arm.items() if first.get(s)})
        mean = interval_text(Estimate(interval(of_arm).mean, math.nan, math.nan, (1,)))
        text = f"{mean} {chart.unit}"
        if of_arm is not first:
            text += f", {interval_text(test)} times the {base}'s"
            signs[title] = test.sign(1.0)
        rows.append(
            {"series": title, "value": test.mean, "low": test.low, "high": test.high, "text": text}
        )
    claim = f"{chart.title}, against the {base}: {grouped_by_sign(signs, 'ratio')}"
    frame = pd.DataFrame(rows)
    note = (
        "Bars: times the first, means over seeds with 95% intervals. Numbers: medians over the "
        "steps, means over seeds."
    )
    drawing = _bars(frame, f"times the {base}", chart.mark, chart.mark_label)
    to_svg(drawing, path, *_heading(chart, claim, note, [len(of) for of in values.values()]))
    return frame, claim


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
