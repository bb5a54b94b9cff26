"""Charts as Altair specifications: one function a chart, one theme, light and dark.

A function takes a tidy frame and returns an Altair chart without title. `html.embed` puts it into a
page, where Vega draws it; `svg.to_svg` draws the same specification for documents. Charts name
colours of the light theme, and `DARK` says what becomes of each on a dark page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt
import numpy as np
import pandas as pd

Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart | alt.FacetChart

INK, SOFT, RULE = "#1b1d21", "#5b6067", "#e2dfd8"
CARD, SUNK, ACCENT = "#fffefc", "#f2f0ea", "#0a6673"
ROLES = {"teacher": "#b03f06", "student": "#1b5fbf", "agent": "#0b7a55"}
CATEGORIES = (
    *("#1b5fbf", "#c2480b", "#0b7a55", "#a3318a", "#8a6a00", "#0a7d94", "#6a4fd0", "#7a4a35"),
    *("#3f8f57", "#c0527f", "#68741c", "#8a7ab8"),
)
"""Colours of arms, task types, operators and members, in this order, by theme."""
DIVERGING = ("#e9a06f", "#f5d5bd", "#f7f5ef", "#c5d8f4", "#7faaea")
"""From 0 to 1; the middle is even."""
DARK = {
    **{INK: "#e9e9e6", SOFT: "#a3a8af", RULE: "#2d3238", CARD: "#1a1d21", SUNK: "#15181b"},
    **{ACCENT: "#5cc4d4", "#b03f06": "#ff9a56", "#1b5fbf": "#78adff", "#0b7a55": "#4fd09d"},
    **{"#c2480b": "#ffa566", "#a3318a": "#ee8bd4", "#8a6a00": "#e2c14a", "#0a7d94": "#4cc7de"},
    **{"#6a4fd0": "#b5a0ff", "#7a4a35": "#d3a48f", "#3f8f57": "#86d09a", "#c0527f": "#f09ac0"},
    **{"#68741c": "#b9c46a", "#8a7ab8": "#9d92d6"},
    **{"#e9a06f": "#8f4a1c", "#f5d5bd": "#4d3220"},
    **{"#f7f5ef": "#22262b", "#c5d8f4": "#223a5e", "#7faaea": "#2f62ad"},
}
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
_AXIS = {"labelColor": SOFT, "titleColor": SOFT, "tickColor": RULE, "domain": False}
_AXIS |= {"gridColor": RULE, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
_LEGEND = {"labelColor": SOFT, "orient": "top", "title": None, "labelFontSize": 12, "padding": 0}
THEME: dict[str, Any] = {
    "background": None,
    "font": FONT,
    "padding": 2,
    "view": {"stroke": None},
    "axis": _AXIS,
    "axisX": {"grid": False, "ticks": False, "labelFlush": True},
    "axisY": {"ticks": False, "tickCount": 4, "titleAnchor": "end"},
    "legend": {**_LEGEND, "symbolStrokeWidth": 3, "columnPadding": 12, "labelLimit": 340},
    "header": {"labelColor": INK, "titleColor": INK, "labelFontSize": 12},
    "title": {"color": INK, "subtitleColor": SOFT, "anchor": "start", "fontSize": 14},
    "range": {"category": list(CATEGORIES), "diverging": list(DIVERGING)},
}
HEIGHT = 200
"""Pixels of a plot."""
SMOOTH = 9
"""Points of a running mean."""
POINTS = 240
"""Most points of a main line; a longer one is drawn by means over equal spans, a member's line by
half as many."""


def curves(
    frame: pd.DataFrame,
    colours: Mapping[str, str] | None = None,
    *,
    unit: str = "",
    percent: bool = False,
    smooth: bool = False,
    dashes: bool = False,
    events: Sequence[float] = (),
    steps: int = 0,
    ends: Mapping[str, str] | None = None,
) -> Chart:
    """Lines over steps: a thick one for each `series`, thin ones for its `member`s (or seeds).

    Args:
        frame: `step`, `series`, `value`; where wanted `member` (missing for a thick line), `low`
            and `high` (a band around a thick line), `piece` (a line is broken between pieces).
        colours: by series; without, the theme's categories in the order of the series.
        percent: values are shares; the axis then shows ten points at least.
        unit: the axis's title, which also says where the axis does not begin at 0.
        smooth: thick lines can be running means; the page has a switch (`smooth`).
        dashes: series differ by dashes too.
        events: steps that are marked on the axis.
        steps: the axis ends here, or with the data.
        ends: for each series a number that stands with its name at the line's end, in place of a
            legend.
    """
    frame = downsampled(frame, smooth)
    names = list(dict.fromkeys(frame["series"]))
    palette = [dict(colours or {}).get(name, CATEGORIES[i % 12]) for i, name in enumerate(names)]
    low, high = _domain(frame, percent)
    thin = bool(frame["member"].notna().any())
    stroke: dict[str, Any] = {"symbolType": "stroke", "symbolOpacity": 1, "symbolSize": 200}
    columns = legend_columns(names)
    labelled = not ends and (len(names) > 1 or thin)
    legend = alt.Legend(**stroke, columns=columns) if labelled else None
    x = step_axis("step").scale(domain=[0, steps or float(frame["step"].max())], nice=False)
    # Labels stand where the domain puts them, so that it is not rounded then.
    scale = alt.Scale(domain=[low, high], nice=False if ends else 4, clamp=True)
    axis = alt.Axis(format="~%" if percent else ",~f")
    if not percent and high - low < 6 and (frame["value"] % 1 == 0).all():
        axis.values = list(range(math.ceil(low), math.floor(high) + 1))
    if low > 0:
        unit = f"{unit}, axis cut".removeprefix(", ")
    y = alt.Y("shown:Q", title=unit or None, scale=scale, axis=axis)
    colour = alt.Color("series:N", legend=legend).scale(domain=names, range=palette)
    lines = alt.Chart(frame).transform_calculate(shown=_SHOWN).encode(x=x, y=y, color=colour)
    layers: list[Any] = []
    if "low" in frame:
        band = lines.transform_filter("isValid(datum.low)").mark_area(opacity=0.16, clip=True)
        bottom = alt.Y("low:Q", scale=scale, title=unit or None)
        layers.append(band.encode(y=bottom, y2=alt.Y2("high:Q"), color=colour))
    if thin:
        members = lines.transform_filter("isValid(datum.member)")
        chosen = {"test": "datum.member == member"}
        faint = [{**chosen, "value": 1}, {"test": "member == ''", "value": 0.35}]
        layers.append(
            members.mark_line(clip=True).encode(
                detail=[alt.Detail("member:N"), alt.Detail("piece:N")],
                opacity=alt.OpacityValue(0.1, condition=faint),
                strokeWidth=alt.StrokeWidthValue(1, condition={**chosen, "value": 2.25}),
            )
        )
    main = lines.transform_filter("!isValid(datum.member)")
    few = bool(frame[frame["member"].isna()].groupby("series").size().max() < 8)
    dash: Any = alt.Undefined
    if dashes:
        dash = alt.StrokeDash("series:N", legend=legend).scale(domain=names)
    layers.append(
        main.mark_line(strokeWidth=2.25, clip=True, point={"size": 26} if few else False).encode(
            strokeDash=dash,
            opacity=alt.OpacityValue(0.35, condition={"test": "member == ''", "value": 1}),
        )
    )
    form = ".1%" if percent else ",.0f" if abs(high) >= 10000 else ".4~g"
    layers.append(_values_at_pointer(frame, names, thin, form))
    if len(events):
        ticks = alt.Chart(pd.DataFrame({"step": sorted(set(events))}))
        layers.append(
            ticks.mark_rule(color=SOFT, strokeWidth=1.25).encode(
                x=alt.X("step:Q"), y=alt.YValue(HEIGHT - 5), y2=alt.Y2Value(HEIGHT)
            )
        )
    if ends:
        at = alt.Chart(_label_heights(frame, ends, low, high)).encode(
            x=alt.value(alt.expr("width")), y=alt.Y("height:Q", scale=scale), color=colour
        )
        text: dict[str, Any] = {"align": "left", "dx": 8, "fontSize": 14}
        layers.append(at.mark_text(dy=-8, fontWeight=600, **text).encode(text="series:N"))
        layers.append(at.mark_text(dy=8, **text).encode(text="text:N"))
    chart: Chart = alt.layer(*layers, width="container", height=HEIGHT)
    return chart.add_params(alt.param("member", value=""), alt.param("smooth", value=True))


def _label_heights(
    frame: pd.DataFrame, ends: Mapping[str, str], low: float, high: float
) -> pd.DataFrame:
    """A row for each line: `series`, `text` and `height`, which is where the line ends, or as near
    to it as labels of two lines allow that do not overlap."""
    last = frame[frame["member"].isna()].groupby("series")["value"].last().sort_values()
    gap = min(34 / HEIGHT, 1 / max(len(last) - 1, 1)) * (high - low)
    height = spread(last, gap, low, high)
    return pd.DataFrame({"series": last.index, "text": last.index.map(ends), "height": height})


def spread(positions: pd.Series, gap: float, low: float, high: float) -> np.ndarray:
    """Ascending positions, moved as little as makes neighbours `gap` apart and keeps all between
    `low` and, where there is room, `high`."""
    from scipy.optimize import isotonic_regression  # imported late: few charts have labels

    steps = gap * np.arange(len(positions))
    moved: np.ndarray = isotonic_regression(positions.to_numpy(dtype=float) - steps).x
    return np.clip(moved, low, max(low, high - steps[-1])) + steps


_SHOWN = "smooth && isValid(datum.soft) ? datum.soft : datum.value"


def _values_at_pointer(frame: pd.DataFrame, names: Sequence[str], thin: bool, form: str) -> Any:
    """A rule at the step that is pointed at, with the values of all thick lines and of the chosen
    member."""
    hover = alt.selection_point(
        "hover", nearest=True, on="pointerover", clear="pointerout", fields=["step"], empty=False
    )
    tooltips = [alt.Tooltip("step:Q")]
    tooltips += [alt.Tooltip(f"{_field(name)}:Q", title=name, format=form) for name in names]
    if thin:
        tooltips.append(alt.Tooltip("chosen:N", title="member"))
    chosen = (
        "member == '' ? 'pick one to read it' : "
        f"member + ' ' + (isValid(datum[member]) ? format(datum[member], '{form}') : '-')"
    )
    line = "isValid(datum.member) ? datum.member : datum.series"
    seen = {"param": "hover", "value": 1, "empty": False}
    return (
        alt.Chart(frame)
        .transform_calculate(shown=_SHOWN, line=line)
        .transform_pivot("line", "shown", ["step"])
        .transform_calculate(chosen=chosen)
        .mark_rule(color=SOFT, strokeDash=[2, 3])
        .encode(alt.X("step:Q"), opacity=alt.OpacityValue(0, condition=seen), tooltip=tooltips)
        .add_params(hover)
    )


def step_axis(field: str) -> alt.X:
    """The horizontal axis of a chart over steps."""
    axis = alt.Axis(titleAnchor="end", tickMinStep=1, tickCount=7, format="d")
    return alt.X(f"{field}:Q", title="step", axis=axis)


def scatter(frame: pd.DataFrame) -> Chart:
    """A point for each member and step on a logarithmic axis: `step`, `series` (its role),
    `member`, `value` above 0."""
    roles = list(dict.fromkeys(frame["series"]))
    colour = alt.Color("series:N", legend=alt.Legend() if len(roles) > 1 else None)
    chosen = alt.when("member == '' || datum.member == member")
    low, high = math.floor(math.log10(frame["value"].min())), math.log10(frame["value"].max())
    marks = [digit * 10.0**power for power in range(low, math.ceil(high) + 1) for digit in (1, 3)]
    y = alt.Y("value:Q", title=None, axis=alt.Axis(format=".0e", values=marks)).scale(type="log")
    chart: Chart = (
        alt.Chart(frame, width="container", height=HEIGHT)
        .mark_circle(size=22)
        .encode(
            x=step_axis("step"),
            y=y,
            color=colour.scale(domain=roles, range=[ROLES[role] for role in roles]),
            opacity=chosen.then(alt.value(0.7)).otherwise(alt.value(0.1)),
            tooltip=["step:Q", "member:N", alt.Tooltip("value:Q", format=".3~g")],
        )
        .add_params(alt.param("member", value=""))
    )
    return chart


def legend_columns(names: Sequence[str]) -> alt.ExprRef:
    """Columns of a legend: so many that no name is cut at the page's width."""
    name = 46 + 7 * max(map(len, names), default=1)
    # Not the plot's own width: it changes while the page is laid out, and the legend would grow.
    return alt.ExprRef(f"max(1, floor(((containerSize()[0] || width) - 50) / {name}))")


def downsampled(frame: pd.DataFrame, smooth: bool = False) -> pd.DataFrame:
    """The frame of `curves` with at most `POINTS` points a line, columns `member` and `piece`
    filled in, and `soft`: the running mean of a thick line of enough points, if `smooth`."""
    frame = frame.dropna(subset=["value"])
    frame = frame.assign(member=frame.get("member"), piece=frame.get("piece", 0))
    columns = [name for name in ("value", "low", "high") if name in frame]
    keys, parts = ["series", "member", "piece"], []
    for (series, member, piece), line in frame.groupby(keys, dropna=False, sort=False):
        main = pd.isna(member)
        line = line.sort_values("step")
        stride = -(-len(line) // (POINTS if main else POINTS // 2))
        if stride > 1:
            spans = pd.Series(range(len(line)), index=line.index) // stride
            line = line[["step", *columns]].groupby(spans).mean().round({"step": 1})
            line = line.assign(series=series, member=member, piece=piece)
        if smooth and main and len(line) > 2 * SMOOTH:
            line = line.assign(soft=line["value"].rolling(SMOOTH, 1, center=True).mean())
        parts.append(line)
    return pd.concat(parts) if parts else frame


def _domain(frame: pd.DataFrame, percent: bool) -> tuple[float, float]:
    """The axis fits lines and bands, and begins at 0 where that costs less than half of it; of
    shares it has ten points at least."""
    columns = [name for name in ("value", "low", "high") if name in frame]
    low, high = float(frame[columns].min().min()), float(frame[columns].max().max())
    shares = percent and low >= 0 and high <= 1
    least = 0.1 if percent else max(abs(high) * 0.02, 1e-6)
    if (more := (least - (high - low)) / 2) > 0:
        low, high = low - more, high + more
    if shares:
        high, low = max(min(high, 1.0), 0.1), min(max(low, 0.0), 0.9)
    return 0.0 if 0 < low < high / 2 else low, high


def _field(name: str) -> str:
    """A name as a field: Vega reads dots and brackets as paths."""
    return "".join(f"\\{sign}" if sign in ".[]:\\'\"" else sign for sign in name)


def heatmap(frame: pd.DataFrame, counts: str, cell: int = 0) -> Chart:
    """Shares of a teacher's tasks (`row`) that a student (`column`) solved, as coloured cells with
    their figures: `value`, `count`, and where wanted `low`, `high`. Rows and columns stand as they
    come.

    Args:
        counts: what `count` counts.
        cell: pixels of a cell, which then shows no count; 0 fits the width of the page.
    """
    across, down = (list(dict.fromkeys(frame[name])) for name in ("column", "row"))
    angle = -60 if cell or len(across) > 16 else 0
    axis = alt.Axis(orient="top", title="student", labelAngle=angle, labelFlush=False)
    x = alt.X("column:N", sort=across, axis=axis).scale(padding=0.04)
    y = alt.Y("row:N", sort=down, title="teacher", axis=alt.Axis(titleAnchor="middle"))
    titles = {"value": "solved", "low": "95%, low", "high": "95%, high"}
    tooltips = [
        *(alt.Tooltip("row:N", title="teacher"), alt.Tooltip("column:N", title="student")),
        *(alt.Tooltip(f"{n}:Q", title=titles[n], format=".1%") for n in titles if n in frame),
        alt.Tooltip("count:Q", title=counts),
    ]
    base = alt.Chart(frame).encode(x=x, y=y.scale(padding=0.04), tooltip=tooltips)
    legend = alt.Legend(format="%", gradientLength=160, orient="bottom")
    shade = alt.Color("value:Q", legend=legend).scale(
        domain=[0, 1], range=list(DIVERGING), interpolate="rgb"
    )
    share = base.transform_filter("isValid(datum.value)").encode(
        text=alt.Text("value:Q", format=".0%")
    )
    layers = [
        base.mark_rect(cornerRadius=3).encode(color=shade),
        share.mark_text(fontSize=12, color=INK, dy=0 if cell else -6),
    ]
    if not cell:
        count = base.transform_calculate(n="'\u00d7' + datum.count").encode(text="n:N")
        layers.append(count.mark_text(fontSize=10, color=SOFT, dy=9))
    width: Any = alt.Step(cell) if cell else "container"
    chart: Chart = alt.layer(*layers, width=width, height=(cell or 38) * len(down))
    return chart


def intervals(frame: pd.DataFrame, unit: str = "", reference: float = 0) -> Chart:
    """Differences (ratios, if the `reference` is 1) with their intervals, one below the other:
    `label`, `mean`, `low`, `high`, and `sure` (whether it is beyond noise); without a `mean` the
    label is a heading. Labels stand above their intervals, so that they are whole on a phone."""
    sign = "" if reference else "+"
    tooltips = [alt.Tooltip("label:N", title=" ")]
    tooltips += [
        alt.Tooltip(f"{name}:Q", format=f"{sign},.3~r") for name in ("mean", "low", "high")
    ]
    rows = alt.Chart(frame.assign(row=range(len(frame)))).encode(y=alt.Y("row:O", axis=None))
    base = rows.transform_filter("isValid(datum.mean)").encode(tooltip=tooltips)
    heads = rows.transform_filter("!isValid(datum.mean)")
    colour = alt.when("datum.sure").then(alt.value(ACCENT)).otherwise(alt.value(SOFT))
    x = alt.X(
        "low:Q", title=unit or None, axis=alt.Axis(format=f"{sign},~f", grid=True, tickCount=6)
    )
    x = x.scale(nice=True, padding=8)
    zero = alt.Chart(pd.DataFrame({"zero": [reference]})).mark_rule(color=SOFT, strokeDash=[2, 3])
    label: dict[str, Any] = {"x": alt.value(0), "text": "label:N"}
    text: dict[str, Any] = {"align": "left", "fontSize": 12, "color": INK}
    dot = base.mark_point(filled=True, size=60, opacity=1, yOffset=6)
    chart: Chart = alt.layer(
        zero.encode(x="zero:Q"),
        base.mark_text(dy=-9, **text).encode(**label),
        heads.mark_text(dy=6, fontWeight=600, **text).encode(**label),
        base.mark_rule(strokeWidth=2.5, yOffset=6).encode(x=x, x2="high:Q", color=colour),
        dot.encode(x="mean:Q", color=colour),
        width="container",
        height=36 * len(frame),
    )
    return chart


def specification(chart: Chart) -> dict[str, Any]:
    """The chart as Vega-Lite, its data within, without the theme."""
    with alt.data_transformers.enable("default", max_rows=None):
        spec: dict[str, Any] = chart.to_dict(validate=False)
    for key in ("config", "$schema"):
        spec.pop(key, None)
    # A missing name is NaN from pandas 3 on, and JSON has no NaN.
    spec["datasets"] = {
        name: [
            {key: None if value != value else value for key, value in row.items()} for row in rows
        ]
        for name, rows in spec.get("datasets", {}).items()
    }
    return spec
