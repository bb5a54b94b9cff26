"""Figures of recipes: the sentence is that of the numbers, and nothing is cut."""

import re

import pandas as pd
import pytest

from azr_population.analysis import charts
from azr_population.analysis.statistics import interval
from azr_population.experiments.claims import draw_figure, level_of
from azr_population.experiments.recipes import Chart, read_arms
from azr_population.runs.tidy import tidy

LENGTHS = {"single": 20, "1t1s": 20}


def run(first, last, metric="agent/lines"):
    """A run of 20 steps in which the metric moves evenly."""
    return tidy([{"step": s, metric: first + (last - first) * s / 20} for s in range(1, 21)])


def drawn(tmp_path, chart, tables):
    given = Chart.model_validate(chart)
    frame, sentence = draw_figure(given, tables, LENGTHS, read_arms(), tmp_path / "a.svg")
    return frame, sentence, (tmp_path / "a.svg").read_text()


TABLES = {
    "single": {f"seed_{i}": run(5 + i / 10, 3 + i / 9) for i in range(3)},
    "1t1s": {f"seed_{i}": run(5 + i / 10, 5 + i * (i - 1) / 10, "teacher/lines") for i in range(3)},
}


def test_the_title_is_a_sentence_of_the_numbers(tmp_path):
    chart = {"metric": "lines", "title": "Lines of programs", "paper": "fall and grow"}
    frame, sentence, svg = drawn(tmp_path, chart, TABLES)
    assert sentence.startswith("Lines of programs: down 1.79 with")
    assert sentence.endswith("with the single agent; no change shown with 1T+1S")
    text = re.sub(r"<[^>]+>", " ", svg)
    assert "single agent 3, 1T+1S 3" in text and "95% intervals" in text
    assert "The paper (7B, 200 steps): fall and grow." in text
    assert set(frame["series"]) == {"single agent", "1T+1S"}


def test_levels_are_said_where_the_end_counts(tmp_path):
    tables = {"single": {f"seed_{i}": run(0.3, 0.4 + i / 100, "eval/greedy") for i in range(3)}}
    chart = {"metric": "eval/greedy", "title": "Held-out tasks", "reduce": "last"}
    _, sentence, _ = drawn(tmp_path, chart, tables)
    assert sentence == "Held-out tasks at the end: 41.0% [38.5, 43.5] with the single agent"


@pytest.mark.parametrize(
    ("metric", "reduce", "bounds"),
    [
        ("eval/greedy", "last", (0.0, 1.0)),
        ("eval/greedy/deep", "last", (0.0, 1.0)),
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
    cut = level_of(metric, reduce, values)
    assert (cut.low, cut.high) == (max(low, whole.low), high)
    assert (cut.mean, cut.p) == (whole.mean, whole.p)
    one = level_of(metric, reduce, {"seed_1": 0.5})
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


def test_ratios_stand_beside_the_papers_value(tmp_path):
    tables = {
        "single": {f"seed_{i}": run(1, 1, "time/step") for i in range(3)},
        "1t1s": {f"seed_{i}": run(2 + i / 10, 2 + i / 10, "time/step") for i in range(3)},
    }
    chart = {"metric": "time/step", "title": "Time", "reduce": "median", "ratio": True}
    frame, sentence, svg = drawn(tmp_path, {**chart, "unit": "s", "mark": 1.31}, tables)
    assert frame["value"].tolist() == pytest.approx([1.0, 2.1])
    assert sentence.startswith("Time: 1T+1S has 2.10 [") and "the paper, 7B on GPUs: 1.31" in svg


def test_letters_have_nine_points_where_a_figure_is_15_cm_wide(tmp_path):
    _, _, svg = drawn(tmp_path, {"metric": "lines", "title": "Lines of valid programs"}, TABLES)
    width = float(re.search(r'<svg[^>]*\bwidth="([\d.]+)"', svg)[1])
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)]
    assert sizes and min(sizes) / width * 15 / 2.54 * 72 >= 9
