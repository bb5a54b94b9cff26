"""Figures of recipes: the title is what the numbers show, and nothing is cut."""

import re

import pandas as pd
import pytest

from azr_population.analysis import charts
from azr_population.analysis.metrics import MetricSamples, metric_named
from azr_population.analysis.statistics import interval
from azr_population.experiments.claims import draw_figure
from azr_population.experiments.recipes import Chart, read_arms
from azr_population.reading.tidy import tidy

LENGTHS = {"single": 20, "1t1s": 20}


def run(first, last, metric="agent/lines"):
    """A run of 20 steps in which the metric moves evenly."""
    return tidy([{"step": s, metric: first + (last - first) * s / 20} for s in range(1, 21)])


def drawn(tmp_path, chart, tables, results=None):
    given, path = Chart.model_validate(chart), tmp_path / "a.svg"
    frame, claim = draw_figure(given, tables, LENGTHS, read_arms(), path, results)
    return frame, claim, path.read_text()


def words(svg):
    """The text of a picture, its lines joined."""
    return " ".join(re.sub(r"<[^>]+>", " ", svg).split())


TABLES = {
    "single": {f"seed_{i}": run(5 + i / 10, 3 + i / 9) for i in range(3)},
    "1t1s": {f"seed_{i}": run(5 + i / 10, 5 + i * (i - 1) / 10, "teacher/lines") for i in range(3)},
}


def test_the_title_is_a_claim_and_numbers_stand_at_the_lines(tmp_path):
    chart = {"metric": "lines", "title": "Lines of programs", "paper": "fall and grow"}
    frame, claim, svg = drawn(tmp_path, chart, TABLES)
    assert claim == (
        "Lines of programs: down with the single agent; no change shown with the pair (1T+1S)"
    )
    text = words(svg)
    assert "(n = 3 seeds)" in text and "95% intervals" in text
    assert "-1.79 [-1.81, -1.77]" in text and "single agent pair (1T+1S)" in text
    assert "The paper (7B, 200 steps): fall and grow." in text
    assert set(frame["series"]) == {"single agent", "pair (1T+1S)"}


@pytest.mark.parametrize(
    ("arms", "holds"),
    [
        ({"down": ["single"], "level": ["1t1s"]}, True),
        ({"down": ["single", "1t1s"]}, False),
        ({"up": ["single"]}, False),
        ({"down": ["4t4s"]}, False),
    ],
)
def test_a_claim_is_the_title_only_where_the_intervals_bear_it_out(arms, holds, tmp_path):
    chart = {"metric": "lines", "title": "Lines", "claim": {"text": "Shorter alone", **arms}}
    _, claim, svg = drawn(tmp_path, chart, TABLES)
    assert (claim == "Shorter alone") == holds == ("Shorter alone" in svg)


@pytest.mark.parametrize(
    ("differs", "mean", "said"),
    [
        (True, 0.2, ", against the single agent: above with the pair (1T+1S)"),
        (True, -0.2, ", against the single agent: below with the pair (1T+1S)"),
        (False, 0.2, ", against the single agent: no difference shown with the pair (1T+1S)"),
        (None, 0.2, ""),
    ],
)
def test_levels_are_compared_as_the_table_compares_them(differs, mean, said, tmp_path):
    row = {"metric": "eval/greedy", "reduce": "last", "role": "", "arm": "1t1s"}
    of_another = {**row, "step": 10, "minus_single_mean": -mean, "differs": True}
    results = pd.DataFrame(
        [{**row, "step": None, "minus_single_mean": mean, "differs": differs}, of_another]
    )
    chart = {"metric": "eval/greedy", "title": "Held-out tasks", "reduce": "last"}
    seeds = {f"seed_{i}": run(0.3, 0.4 + i / 100, "eval/greedy") for i in range(3)}
    tables = {"single": seeds, "1t1s": seeds}
    _, claim, svg = drawn(tmp_path, chart, tables, results)
    assert claim == f"Held-out tasks at the end{said}"
    assert "41.0% [38.5, 43.5]" in words(svg)


def test_a_value_to_hold_the_arms_against_is_a_line_with_its_name(tmp_path):
    chart = {"metric": "lines", "title": "Lines", "reduce": "last", "mark": 4.5}
    _, claim, svg = drawn(tmp_path, {**chart, "mark_label": "corpus"}, TABLES)
    assert claim == (
        "Lines at the end, against the corpus: below with the single agent; above with the "
        "pair (1T+1S)"
    )
    assert "corpus" in words(svg) and " 4.5 " in words(svg)


def test_a_band_ends_where_the_table_does(tmp_path):
    tables = {"single": {f"seed_{n}": run(last, last) for n, last in enumerate((0.5, 0.6, 6.0))}}
    frame, _, svg = drawn(tmp_path, {"metric": "lines", "title": "L", "reduce": "last"}, tables)
    assert set(frame["low"]) == {0.0} and "2.4 [0.0, 10.2]" in words(svg)


def test_labels_at_lines_ends_do_not_overlap_and_stay_in_the_plot():
    ends = {"a": 0.9, "b": 0.9, "c": 0.89, "d": 0.1}
    frame = pd.DataFrame({"series": ends, "value": ends, "step": 1, "member": None})
    heights = charts._label_heights(frame, dict.fromkeys(ends, ""), 0.0, 1.0)["height"]
    assert heights.between(-1e-9, 1 + 1e-9).all()
    assert heights.sort_values().diff().min() >= 34 / charts.HEIGHT - 1e-9


def test_a_figure_has_the_dark_colours_of_the_light_ones(tmp_path):
    _, _, svg = drawn(tmp_path, {"metric": "lines", "title": "Lines"}, TABLES)
    style = re.search(r"<style>@media \(prefers-color-scheme:dark\)\{(.*)\}</style>", svg)[1]
    for light in set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', svg)):
        assert f'="{light}"' in style and charts.DARK[light] in style


@pytest.mark.parametrize(
    ("metric", "reduce", "bounds"),
    [
        ("eval/greedy", "last", (0.0, 1.0)),
        ("eval/greedy/deep", "last", (0.0, 1.0)),
        ("eval/worst/deep", "last", (0.0, 1.0)),
        ("eval/greedy", "delta", (-1.0, 1.0)),
        ("solve_rate", "autocorrelation", (-1.0, 1.0)),
        ("coverage", "last", (0.0, None)),
        ("lines", "change", (None, None)),
        ("answer_reward", "last", (None, None)),
    ],
)
def test_an_interval_ends_where_no_value_can_lie(metric, reduce, bounds):
    values = {"seed_1": 0.02, "seed_2": 0.98, "seed_3": 0.9}
    whole = interval(values)
    assert whole.low < -0.5 and whole.high > 1.5
    low, high = (
        a if b is None else b for a, b in zip((whole.low, whole.high), bounds, strict=True)
    )
    cut = MetricSamples(metric_named(metric), reduce, {"a": values}).value("a")
    assert (cut.low, cut.high) == (max(low, whole.low), high)
    assert (cut.mean, cut.p) == (whole.mean, whole.p)
    one = MetricSamples(metric_named(metric), reduce, {"a": {"seed_1": 0.5}}).value("a")
    assert one.low != one.low and one.high != one.high


def test_an_arm_has_one_colour_in_all_figures(tmp_path):
    colours = []
    for arms in (("single", "1t1s"), ("1t1s",)):
        _, _, svg = drawn(
            tmp_path, {"metric": "lines", "title": "L"}, {arm: TABLES[arm] for arm in arms}
        )
        colours.append(charts.CATEGORIES[1] in svg)
        assert (charts.CATEGORIES[0] in svg) == ("single" in arms)
    assert colours == [True, True]


@pytest.mark.parametrize("percent", [False, True])
def test_bands_are_never_cut(percent):
    frame = pd.DataFrame({"value": [0.3, 0.31], "low": [0.1, 0.25], "high": [0.9, 0.4]})
    low, high = charts._domain(frame, percent)
    assert low <= 0.1 and high >= 0.9


@pytest.mark.parametrize(("values", "cut"), [((0.10, 0.45), False), ((0.40, 0.45), True)])
def test_an_axis_of_shares_begins_at_0_or_says_that_it_is_cut(values, cut):
    frame = pd.DataFrame({"step": [1, 2], "series": "a", "value": values})
    text = charts.curves(frame, percent=True, unit="solved").to_json()
    assert ("solved, axis cut" in text) == cut


def test_ratios_have_the_interval_of_the_seeds(tmp_path):
    tables = {
        "single": {f"seed_{i}": run(1, 1, "time/step") for i in range(3)},
        "1t1s": {f"seed_{i}": run(2 + i / 10, 2 + i / 10, "time/step") for i in range(3)},
    }
    chart = {"metric": "time/step", "title": "Time", "reduce": "median", "ratio": True}
    frame, claim, svg = drawn(tmp_path, {**chart, "unit": "s"}, tables)
    assert frame["value"].tolist() == pytest.approx([1.0, 2.1])
    assert claim == "Time, against the single agent: more with the pair (1T+1S)"
    assert "2.10 s, 2.10 [1.85, 2.35] times the single agent's" in words(svg)


def test_letters_have_nine_points_where_a_figure_is_15_cm_wide(tmp_path):
    _, _, svg = drawn(tmp_path, {"metric": "lines", "title": "Lines of valid programs"}, TABLES)
    width = float(re.search(r'<svg[^>]*\bwidth="([\d.]+)"', svg)[1])
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)]
    assert sizes and min(sizes) / width * 15 / 2.54 * 72 >= 9
