import json
import os
import re

import altair as alt
import pandas as pd
import pytest

from azr_population.analysis import charts, html

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> <!-- ]]> \u2028"


def chart(name="a"):
    return charts.intervals(
        pd.DataFrame({"label": [name], "mean": [0.123456], "low": 0.1, "high": 0.2, "sure": True})
    )


def test_text_of_strangers_stays_text_in_figures_and_in_their_data():
    figure = html.embed(chart(HOSTILE), HOSTILE, HOSTILE)
    assert figure.count("<script") == 1 == figure.count("</script>") and "<img" not in figure
    inside = re.search(r'<script type="application/json">(.*?)</script>', figure)
    assert inside and json.loads(inside[1])["description"] == html.publishable(HOSTILE)


def test_a_page_has_vega_once_and_only_where_a_chart_is(monkeypatch):
    monkeypatch.setattr(html, "bundle", lambda: "BUNDLE")
    two = html.embed(chart(), "a") + html.embed(chart(), "b")
    page = html.page("crossplay.html.j2", "t", matrix=two, sentences=[])
    without = html.page("crossplay.html.j2", "t", matrix="", sentences=[])
    # Vega's licence asks for its copyright beside its code.
    for text in ("BUNDLE", "University of Washington Interactive Data Lab"):
        assert page.count(text) == 1 and text not in without


def test_nothing_of_the_bundle_ends_its_element_and_it_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bundle = html.bundle.__wrapped__()
    (cached,) = tmp_path.rglob("vega-*.js")
    assert cached.read_text() == bundle
    cached.write_text("kept")
    assert html.bundle.__wrapped__() == "kept"
    assert len(bundle) < 1_500_000 and "</script" not in bundle.lower() and "<!--" not in bundle


def test_data_is_packed_by_columns_with_five_digits():
    spec = {"datasets": {"d": [{"a": 0.1234567, "b": "x"}, {"a": float("nan"), "b": "x"}]}}
    packed = html.packed(spec)["datasets"]["d"]
    assert packed == {"a": [0.12346, None], "b": {"levels": ["x"], "codes": [0, 0]}}


def test_no_secret_is_in_any_part_of_a_chart():
    secret = "hf_" + "A1b2" * 5
    name = f"mutate --token {secret} in {os.getcwd()}/own.py"
    frame = pd.DataFrame({"series": [name, "b"], "value": [1, 2]})
    colour = alt.Color("series:N", title=f"Authorization: Bearer {secret}")
    drawn = (
        alt.Chart(frame, title=secret, name=secret)
        .transform_calculate(own=f"datum.series == {json.dumps(name)} ? 1 : '{secret}'")
        .mark_text(text=secret, href=f"https://me:{secret}@example.org")
        .encode(color=colour.scale(domain=[name, "b"]))
        .add_params(alt.param("shade", value=secret))
    )
    spec = json.loads(re.search(r"json\">(.*?)</script>", html.embed(drawn, secret, secret))[1])
    assert secret not in json.dumps(spec) and os.getcwd() not in json.dumps(spec)
    (column,) = (data["series"]["levels"] for data in spec["datasets"].values())
    assert spec["encoding"]["color"]["scale"]["domain"] == column, "it has its colour"
    assert json.dumps(column[0]) in spec["transform"][0]["calculate"]


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "x" * 5000, "\x1b[2J", "a\u202eb", "\r"])
def test_text_is_cut_printable_and_can_be_encoded(text):
    shown = html.truncated(text)
    assert shown.isprintable() and len(shown.encode("utf-8")) < html.MAX_TEXT + 50
    assert html.truncated("a\n\tb") == "a\n\tb"
