"""Tests over seeds, held against numbers that can be worked out by hand or are published."""

import math

import pytest

from azr_population.runs.diagnostics.significance import (
    holm,
    interquartile_mean,
    p_value,
    permutation_p,
)


def test_holm_scales_each_by_those_not_yet_rejected_and_never_falls():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    corrected = holm([0.02, math.nan, 0.03])
    assert corrected[0] == pytest.approx(0.04) and corrected[2] == pytest.approx(0.04)
    assert math.isnan(corrected[1]) and holm([]) == []


def test_p_is_that_of_the_interval_which_just_touches_0():
    a, b = [1.0, 2.0, 3.0], [0.0, 0.5, 1.0]
    # Student's t of the differences 1, 1.5, 2 is 3 sqrt(3) = 5.196 with two degrees of freedom.
    assert p_value(a, b, paired=True) == pytest.approx(0.03510, abs=1e-5)
    # Welch: t = 1.5 / sqrt(1.25 / 3) = 2.3238 with 2.941 degrees of freedom.
    assert p_value(a, b, paired=False) == pytest.approx(0.10462, abs=2e-4)
    assert p_value([1.0, 1.5, 2.0], None, paired=False) == pytest.approx(0.03510, abs=1e-5)
    assert math.isnan(p_value([1.0], [2.0], paired=False))


def test_permutations_are_counted_where_they_can_say_anything():
    # The most extreme of 70 ways to split eight seeds, on both sides.
    assert permutation_p([5, 6, 7, 8], [1, 2, 3, 4], paired=False) == pytest.approx(2 / 70)
    assert permutation_p([1, 2, 3], [4, 5, 6], paired=False) is None
    assert permutation_p([2.0] * 6, [1.0, 1.1, 1.2, 1.3, 1.4, 1.5], paired=True) == 2 / 64
    assert permutation_p([1.0] * 5, None, paired=False) is None


def test_the_interquartile_mean_leaves_the_outer_quarters_out():
    middle = interquartile_mean([0.0, 1.0, 2.0, 3.0, 100.0, 1.5, 2.5, -50.0])
    assert middle.mean == pytest.approx((1.0 + 1.5 + 2.0 + 2.5) / 4)
    assert middle.low < middle.mean < middle.high and middle.n == 8
    assert interquartile_mean([1.0, 2.0, 3.0, 4.0]) is None
