"""A recipe's numbers, one for each run, and its figures: each has for a title what its numbers
show, and the numbers at its lines."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from azr_population.analysis import charts
from azr_population.analysis.children import ALL, LAST, SPAN, YOUNG, recovery
from azr_population.analysis.metrics import MetricSamples, all_metrics, metric_named
from azr_population.analysis.sentences import grouped_by_sign, joined, sign_word, with_article
from azr_population.analysis.statistics import REDUCERS, Estimate, band, interval_text
from azr_population.analysis.svg import to_svg
from azr_population.experiments.recipes import Arms, Chart, Measure
from azr_population.reading import tidy
from azr_population.reading.run_data import RunData
from azr_population.runs.records import ROLES

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


def curves_of(
    measure: Measure, tables: Tables, lengths: Mapping[str, int]
) -> dict[str, dict[str, pd.Series]]:
    """arm -> seed -> the `curve` up to the measure's step, or the arm's length; without those that
    have none."""
    curves: dict[str, dict[str, pd.Series]] = {}
    for arm, by_seed in tables.items():
        for seed, table in by_seed.items():
            points = curve(table, measure.metric, measure.role)
            if len(points := points[points.index <= (measure.step or lengths[arm])]):
                curves.setdefault(arm, {})[seed] = points
    return curves


def samples_of(
    measure: Measure, tables: Tables, lengths: Mapping[str, int], base: str = ""
) -> MetricSamples:
    """The number of every run that has come to the measure's step, or to its arm's length; `base`
    is the arm that a ratio is over."""
    samples: dict[str, dict[str, float]] = {}
    for arm, of_arm in curves_of(measure, tables, lengths).items():
        end = measure.step or lengths[arm]
        for seed, points in of_arm.items():
            value = REDUCERS[measure.reduce](points, end)
            if tables[arm][seed]["step"].max() >= end and not math.isnan(value):
                samples.setdefault(arm, {})[seed] = value
    if not measure.ratio:
        return MetricSamples(metric_named(measure.metric), measure.reduce, samples)
    bases = samples.get(base, {})
    ratios = {
        arm: {seed: value / bases[seed] for seed, value in values.items() if bases.get(seed)}
        for arm, values in samples.items()
    }
    return MetricSamples(None, measure.reduce, ratios)


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
    lines = curves_of(chart, tables, lengths)
    if not lines:
        return pd.DataFrame(), ""
    samples = samples_of(chart, tables, lengths)
    percent, estimates = samples.percent, {arm: samples.value(arm) for arm in lines}
    titles = {arm: arms.find(arm).title for arm in lines}
    # A bound beyond what is possible says nothing.
    bounds = samples.metric.bounds("last") if samples.metric else ()
    frame = pd.concat([band(of, *bounds).assign(series=titles[arm]) for arm, of in lines.items()])
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
    number = {"change": "change, late minus early", "last": "at the end"}.get(chart.reduce, "late")
    note = f"Lines: means over seeds; bands: 95% intervals. Numbers: {number}, with 95% intervals."
    heading = _heading(chart, claim, note, [len(samples.by_arm.get(arm, ())) for arm in lines])
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
    percent = MetricSamples(metric_named(chart.metric), chart.reduce, {}).percent
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
    lines[["value", "low", "high"]] *= 100 if percent else 1  # of shares in points
    drawing = charts.curves(
        lines.drop(columns=["seeds", "operator"]),
        {"all children": charts.ROLES[role]},
        unit=chart.unit,
        ends={"all children": interval_text(number, percent, signed=True)},
    )
    followed = (f"{row.births} at step {row.Index}" for row in everyone.itertuples())
    note = (
        f"Children minus the other {role}s that are older than {YOUNG} steps, means over the "
        f"{SPAN} steps up to this one after the birth ({joined([*followed])}; thin: one operator "
        "each). "
        "Step 0: the member that was replaced. Band and number: 95% over seeds. Children that "
        "were replaced are in no later point."
    )
    heading = _heading(chart, claim, note, [int(everyone["seeds"].max())])
    to_svg(drawing.properties(width=_PLOT), path, *heading)
    return frame, claim


def _signs(chart: Chart, results: pd.DataFrame | None, arms: list[str]) -> dict[str, int | None]:
    """The signs of the arms' differences to the first in the recipe's table; empty without them, or
    where nothing is decided by so many seeds."""
    first, *others = arms
    if chart.metric == "eval/best":  # above one member by luck alone
        return {}
    table = pd.DataFrame(columns=["metric"]) if results is None else results
    table = table[table["metric"] == chart.metric]
    if f"minus_{first}_mean" not in table:
        return {}
    same = (table["reduce"] == chart.reduce) & (table["role"] == chart.role)
    same &= table["step"].isna() if chart.step is None else table["step"] == chart.step
    of_arm = {row["arm"]: row for row in table[same].to_dict("records")}
    mean = f"minus_{first}_mean"
    return {
        arm: int(math.copysign(of_arm[arm]["differs"], of_arm[arm][mean]))
        for arm in others
        if arm in of_arm and pd.notna(of_arm[arm]["differs"])
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
    """The interval of each arm as a multiple of the first arm's value of the same seed."""
    first = next(iter(tables), "")
    ratios = samples_of(chart, tables, lengths, first)
    values = samples_of(chart.model_copy(update={"ratio": False}), tables, lengths)
    if first not in values.by_arm:
        return pd.DataFrame(), ""
    base = arms.find(first).title
    rows: list[dict[str, Any]] = []
    signs: dict[str, int | None] = {}
    for arm in values.by_arm:
        title, test = arms.find(arm).title, ratios.value(arm)
        mean = interval_text(Estimate(values.value(arm).mean, math.nan, math.nan, (1,)))
        text = f"{mean} {chart.unit}"
        if arm != first:
            text += f", {interval_text(test)} times the {base}'s"
            signs[title] = test.sign(1.0)
        bounds = {"value": test.mean, "low": test.low, "high": test.high}
        rows.append({"series": title, **bounds, "text": text})
    claim = f"{chart.title}, against the {base}: {grouped_by_sign(signs, 'ratio')}"
    frame = pd.DataFrame(rows)
    note = (
        f"Points: times the {base}, means over seeds with 95% intervals. Numbers: medians over the "
        "steps, means over seeds."
    )
    lines = frame.rename(columns={"value": "mean"})
    lines["label"] = lines["series"] + ": " + lines["text"]
    lines["sure"] = [bool(signs.get(title)) for title in lines["series"]]
    drawing = charts.intervals(lines, f"times the {base}", reference=1.0)
    counts = [len(seeds) for seeds in values.by_arm.values()]
    to_svg(drawing, path, *_heading(chart, claim, note, counts))
    return frame, claim
