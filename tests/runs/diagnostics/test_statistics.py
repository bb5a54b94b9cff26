from __future__ import annotations

import math

import pytest
from scipy import stats

from azr_population.errors import UserError
from azr_population.runs.diagnostics import Estimate, band, difference, interval
from azr_population.runs.diagnostics.statistics import difference_of_shares


def test_the_interval_is_students() -> None:
    found = interval([1.0, 2.0, 3.0])
    # t(0.975, 2 degrees of freedom) = 4.30265, standard error 1 / sqrt(3).
    assert found.n == 3
    assert (found.mean, found.low, found.high) == pytest.approx((2.0, -0.48414, 4.48414), abs=1e-5)


def test_one_seed_has_a_mean_but_no_interval() -> None:
    one = interval([0.25])
    assert (one.mean, one.n) == (0.25, 1)
    assert math.isnan(one.low) and math.isnan(one.high)
    none = interval([])
    assert none.n == 0 and math.isnan(none.mean)


def test_equal_seeds_have_an_interval_of_no_width() -> None:
    assert interval([0.5, 0.5, 0.5]) == Estimate(0.5, 0.5, 0.5, 3)
    assert difference([2.0, 2.0], [1.0, 1.0], paired=False) == Estimate(1.0, 1.0, 1.0, 2)


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_a_level_is_a_share(level: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        interval([1.0, 2.0], level)


A, B = [0.24, 0.27, 0.25, 0.31], [0.15, 0.22, 0.16]


def test_welch_as_scipy_has_it() -> None:
    found = difference(A, B, paired=False)
    expected = stats.ttest_ind(A, B, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.mean, found.low, found.high) == pytest.approx(
        (0.090833, 0.015406, 0.166261), abs=1e-6
    )
    assert found.n == 3


def test_paired_as_scipy_has_it() -> None:
    found = difference(A[:3], B, paired=True)
    expected = stats.ttest_rel(A[:3], B).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.mean == pytest.approx(0.23 / 3)


def test_pairs_need_partners() -> None:
    with pytest.raises(UserError, match="4 seeds cannot be paired with 3"):
        difference(A, B, paired=True)


def test_a_difference_of_single_seeds_has_no_interval() -> None:
    found = difference([0.4], [0.1, 0.2], paired=False)
    assert found.mean == pytest.approx(0.25)
    assert math.isnan(found.low) and found.n == 1


def test_a_band_is_of_the_steps_that_all_seeds_have() -> None:
    found = band([[(1, 0.0), (2, 1.0), (4, 5.0)], [(2, 3.0), (3, 9.0), (4, 5.0)]])
    assert [step for step, _ in found] == [2, 4]
    assert found[0][1].mean == 2.0 and found[0][1].n == 2
    assert band([]) == [] and band([[(1, 1.0)], []]) == []


def test_the_difference_of_shares_is_newcombes() -> None:
    # His table II, method 10: 56/70 against 48/80, and 10/10 against 0/20.
    one = difference_of_shares((56, 70), (48, 80))
    assert (one.mean, one.n) == (pytest.approx(0.2), 70)
    assert (one.low, one.high) == (pytest.approx(0.0524, abs=5e-5), pytest.approx(0.3339, abs=5e-5))
    far = difference_of_shares((10, 10), (0, 20))
    assert (far.low, far.high) == (pytest.approx(0.6791, abs=5e-5), pytest.approx(1.0))
    assert (
        difference_of_shares((60, 60), (60, 60)).low
        < 0.0
        < (difference_of_shares((60, 60), (60, 60)).high)
    )
