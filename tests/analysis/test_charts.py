import altair as alt
import pandas as pd
import pytest

from azr_population.analysis import charts
from azr_population.analysis.svg import to_svg


def lines(steps=40, members=3):
    rows = [
        (step, role, member, 0.3 + 0.001 * step)
        for role in ("teacher", "student")
        for member in (None, *(f"{role}_{i}" for i in range(members)))
        for step in range(1, steps + 1)
    ]
    return pd.DataFrame(rows, columns=["step", "series", "member", "value"])


CHARTS = {
    "curves": lambda: charts.curves(
        lines(), charts.ROLES, percent=True, smooth=True, events=[5], dashes=True
    ),
    "bands": lambda: charts.curves(
        pd.DataFrame({"step": [1, 2], "series": "a.b", "value": [1, 2], "low": 0.0, "high": 3.0})
    ),
    "heatmap": lambda: charts.heatmap(
        pd.DataFrame({"row": ["T0"], "column": ["S0"], "value": [0.5], "count": [3]}), "tasks"
    ),
    "intervals": lambda: charts.intervals(
        pd.DataFrame({"label": ["a"], "mean": 0.1, "low": 0.05, "high": 0.2, "sure": True})
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_is_valid_vega_lite_and_can_be_drawn(name, tmp_path):
    chart = CHARTS[name]()
    with alt.data_transformers.enable("default", max_rows=None):
        chart.to_dict(validate=True)
    assert to_svg(chart, tmp_path / "a.svg").read_text().startswith("<svg")


def test_equal_data_gives_equal_bytes(tmp_path):
    first, second = (
        to_svg(CHARTS["curves"](), tmp_path / f"{name}.svg", "A title").read_bytes()
        for name in "ab"
    )
    assert first == second and b"A title" in first


def test_no_colour_of_a_chart_is_without_its_dark_counterpart():
    used = {
        *charts.CATEGORIES,
        *charts.DIVERGING,
        *charts.ROLES.values(),
    }
    used |= {charts.INK, charts.SOFT, charts.RULE, charts.CARD, charts.SUNK, charts.ACCENT}
    assert used <= set(charts.DARK)


def test_long_lines_are_means_of_spans_and_pieces_stay_apart():
    frame = pd.DataFrame({"step": range(1, 1001), "series": "a", "value": 1.0})
    frame["piece"] = (frame["step"] > 500).astype(int)
    thinned = charts.downsampled(frame, smooth=True)
    assert len(thinned) <= 2 * charts.POINTS and (thinned["value"] == 1.0).all()
    assert (
        thinned.groupby("piece")["step"].max()[0]
        < 500.5
        < thinned.groupby("piece")["step"].min()[1]
    )
    assert thinned["soft"].notna().all()
