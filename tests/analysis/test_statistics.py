"""Numbers over seeds, beside figures from textbooks and from R."""

import math

import pandas as pd
import pytest
from scipy import stats

from azr_population.analysis.statistics import (
    REDUCERS,
    Estimate,
    band,
    compare,
    detectable,
    far_apart,
    holm,
    interval,
    interval_text,
    seeds_for,
)


def seeds(*values):
    return {f"seed_{i}": value for i, value in enumerate(values)}


def test_student_of_three():
    # t(2, .975) = 4.302653; sd 1, so half of the interval is 4.302653 / sqrt(3).
    result = interval(seeds(1.0, 2.0, 3.0))
    assert result.mean == 2.0 and result.n == 3
    assert result.high - 2.0 == pytest.approx(4.302653 / math.sqrt(3), abs=1e-5)


def test_six_seeds_in_each_arm_have_welchs_freedom():
    """Symmetric values have no skewness, so interval and p are those of Welch's test."""
    a, b = (0.0, 1.0, 2.0, 5.0, 6.0, 7.0), (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
    result = compare(a, b, False)
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert result.p == pytest.approx(welch.pvalue)
    assert (result.low, result.high) == pytest.approx(tuple(welch.confidence_interval()))


def test_fewer_seeds_have_the_freedom_of_the_smaller_arm():
    # The error is Welch's, sqrt(5 / 12 + 1 / 3); t(2, .975) = 4.302653.
    result = compare(seeds(3.0, 4.0, 5.0, 6.0), seeds(1.0, 2.0, 3.0), False)
    assert result.counts == (4, 3) and result.mean == pytest.approx(2.5)
    error = math.sqrt(5 / 12 + 1 / 3)
    assert result.error == pytest.approx(error)
    assert result.high - result.mean == pytest.approx(4.302653 * error, abs=1e-5)
    assert result.p == pytest.approx(2 * stats.t.sf(2.5 / error, 2))


def test_a_skewed_arm_has_halls_bound_where_it_is_the_farther_one():
    """Of these: mean 4, variance 12, third cumulant 48 (scipy.stats.kstat), so the mean's skewness
    is 48 / 64 / (12 / 8) ** 1.5; Hall's cubic makes Student's 2.364624 of the far bound."""
    values = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 11.0)
    skewness, error = 48 / 64 / (12 / 8) ** 1.5, math.sqrt(12 / 8)
    for sign in (1, -1):
        result = compare([sign * value for value in values], None, False)
        near, far = sorted([result.high - 4 * sign, 4 * sign - result.low])
        t = -far / error
        cubic = t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6
        assert near / error == pytest.approx(2.364624, abs=1e-5)
        assert cubic == pytest.approx(-2.364624, abs=1e-5)


def test_equal_skewness_of_two_arms_cancels():
    a = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 11.0]
    b = [value - 3 for value in a]
    result, welch = compare(a, b, False), stats.ttest_ind(a, b, equal_var=False)
    assert result.p == pytest.approx(welch.pvalue)
    assert (result.low, result.high) == pytest.approx(tuple(welch.confidence_interval()))


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0, 1.4, 1.8, 2.5, 4.0, 9.0])
def test_p_and_interval_say_the_same(shift):
    """Also where one value lies far from all others, and the cubic's inflection bounds Hall's."""
    a, b = (0.0, 0.1, 0.2, 3.0), (0.1 + shift, 0.2 + shift, 0.4 + shift, -2.0 + shift)
    result = compare(a, b, False)
    assert (result.p < 0.05) == (result.high < 0 or result.low > 0)
    assert max(result.high - result.mean, result.mean - result.low) < 2.5 * 3.1825 * result.error


def test_without_variance_or_below_three_seeds_there_is_no_interval():
    for a in ((1, 1, 1), (1, 2), (3,)):
        for b in ((2, 3, 4), None):
            test = compare(a, b, False)
            assert math.isnan(test.low) and math.isnan(test.p)


def test_seeds_that_would_show_a_difference():
    test = compare((0.30, 0.35, 0.40), (0.31, 0.36, 0.41), False)  # a spread of 5 points
    reach = stats.t.isf(0.025, 2) + stats.t.isf(0.1, 2)
    assert test.sd == pytest.approx(0.05)
    assert detectable(test.sd, 3) == pytest.approx(reach * 0.05 * math.sqrt(2 / 3))
    n = seeds_for(test.sd, 0.03)
    assert detectable(test.sd, n) <= 0.03 < detectable(test.sd, n - 1)
    assert seeds_for(test.sd, 0.001) is None
    assert math.isinf(detectable(test.sd, 2))
    assert seeds_for(test.sd, 0.03, level=0.05 / 6) > n


@pytest.mark.parametrize(
    ("values", "apart"),
    [((0.30, 0.31, 0.32, 0.05), True), ((0.30, 0.34, 0.39), False), ((0.3, 0.3), False)],
)
def test_values_far_apart(values, apart):
    assert far_apart(values) == apart


def test_shares_have_wilsons_interval_and_a_bootstrap_its_percentiles():
    solved = interval([1.0] * 30 + [0.0] * 70, "share")
    expected = stats.binomtest(30, 100).proportion_ci(method="wilson")
    assert (solved.mean, solved.low, solved.high) == (0.3, expected.low, expected.high)
    assert interval([], "share").n == 0
    drawn = interval([5.0, *range(101)], "bootstrap")
    assert (drawn.mean, drawn.low, drawn.high) == (5.0, 2.5, 97.5)
    assert interval([1.0] * 9, "bootstrap", 20).low == pytest.approx(0.025 ** (1 / 20))
    sevenths = [sum([1.0 / 7] * 7)] * 9  # 0.9999999999999998
    assert interval(sevenths, "bootstrap", 20).low == pytest.approx(0.025 ** (1 / 20))
    for value, count in ((0.5, 20), (0.0, 0), (1.0, 0)):
        assert interval([value] * 9, "bootstrap", count).sign() is None


def test_paired_seeds_are_those_of_both():
    result = compare({"a": 2.0, "b": 4.0, "c": 9.0}, {"a": 1.0, "b": 1.0}, True)
    assert result.mean == 2.0 and result.n == 2


def test_holm():
    assert holm([0.01, math.nan, 0.04, 0.03]) == pytest.approx(
        [0.03, math.nan, 0.06, 0.06], nan_ok=True
    )


def test_reducers():
    line = pd.Series({step: float(step) for step in range(1, 21)})
    assert REDUCERS["first_10pct"](line, 20) == 1.5
    assert REDUCERS["last_10pct"](line, 20) == 19.5
    assert REDUCERS["change"](line, 20) == 18.0
    assert REDUCERS["last"](line, 20) == 20.0 == REDUCERS["last"](line[:19], 20) + 1
    assert math.isnan(REDUCERS["last"](line[:18], 20)), "19 and 20 are the last tenth"
    assert math.isnan(REDUCERS["autocorrelation"](line, 20))
    early = pd.Series({1: 0.3})  # not a value at the end
    assert math.isnan(REDUCERS["last"](early, 32)) and math.isnan(REDUCERS["delta"](early, 32))


def test_band_has_the_steps_of_all_seeds():
    result = band({"a": pd.Series({1: 1.0, 2: 3.0}), "b": pd.Series({2: 5.0, 3: 0.0})})
    assert result["step"].tolist() == [2] and result["value"].tolist() == [4.0]
    assert band({}).empty


def test_a_band_has_the_intervals_of_the_table():
    values = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 11.0)
    (row,) = band({i: pd.Series({7: value}) for i, value in enumerate(values)}).itertuples()
    test = interval(values)
    assert (row.step, row.value, row.low, row.high) == (7, test.mean, test.low, test.high)
    two = band({"a": pd.Series({1: 1.0}), "b": pd.Series({1: 2.0})})
    assert two["low"].isna().all(), "two seeds have no interval, in tables and in pictures"


NAN = math.nan


@pytest.mark.parametrize(
    ("values", "percent", "signed", "text"),
    [
        ((0.0332, 0.0141, 0.052), True, False, "3.3% [1.4, 5.2]"),
        ((0.0332, 0.0141, 0.052), True, True, "+3.3 points [+1.4, +5.2]"),
        ((0.5, 0.0, 0.9996), True, False, "50.0% [0.0, 100.0]"),
        ((1234.5, NAN, NAN), False, False, "1,234"),
        ((NAN, NAN, NAN), False, False, "-"),
        # What rounds to nothing is said to.
        ((0.0002, 0.0001, 0.0003), True, True, "less than 0.1 points"),
        ((0.0, NAN, NAN), False, True, "0"),
        # A bound keeps its sign: -0.02 points is below 0, and is not -0.0 or +0.0.
        ((-0.8, -1.6, -0.0213), False, True, "-0.80 [-1.60, -0.02]"),
        ((-0.8, -1.6, 0.0004), False, True, "-0.80 [-1.60, +0.0004]"),
        ((0.031, -0.000213, 0.06), True, True, "+3.1 points [-0.02, +6.0]"),
    ],
)
def test_an_interval_in_few_digits(values, percent, signed, text):
    assert interval_text(Estimate(*values, (6,)), percent, signed) == text
