"""The short form of perf/calibration.py: what is stated is seldom false."""

import calibration
import numpy as np
import pytest

from azr_population.analysis.statistics import detectable, mean_tests

SHORT = 200


@pytest.mark.parametrize(
    "name",
    [
        "equal arms, 2 and 2 seeds",
        "equal arms, 3 and 12 seeds",
        "4 times the spread, 12 and 3 seeds",
        "skewed, 3 and 12 seeds",
        "ties of 20 tasks, 4 and 12 seeds",
        "an effect of 3 points, 3 seeds",
        "tails on opposite sides, 6 and 6 seeds",
        "one run in five ends early, 6 and 6 seeds",
        "4 equal arms of 4 seeds",
        "tiles, steps with a noise of 5 points",
    ],
)
def test_verdicts_are_seldom_false_and_intervals_hold(name):
    """Of 200, 6.5% is exceeded by chance alone up to 12.5%: four standard errors."""
    rates = calibration.scenarios(SHORT)[name](np.random.default_rng(2))
    assert not calibration.failing({name: rates}, 0.125, 0.875)


def test_a_rule_that_is_too_sure_is_found(monkeypatch):
    """Were two seeds enough, or the degrees of freedom too many, the simulation would say so."""
    small = "equal arms, 3 and 12 seeds"
    monkeypatch.setattr("scipy.special.stdtrit", lambda freedom, q: 1.2)
    monkeypatch.setattr("scipy.special.stdtr", lambda freedom, t: np.where(t < -1.2, 0.01, 0.5))
    rates = calibration.scenarios(SHORT)[small](np.random.default_rng(2))
    assert calibration.failing({small: rates}, 0.125, 0.875)


def test_power_is_below_welchs_and_what_is_detectable_is_seen_in_four_of_five():
    rates = calibration.power(np.random.default_rng(2), 6, 0.05, 2000)
    assert all(of["compare"] <= of["Welch"] for of in rates.values())
    a, b = np.random.default_rng(3).normal(0, 1, (2, 2000, 6))
    low, *_ = mean_tests([a + detectable(1.0, 6), b])
    assert 0.77 < np.mean(low > 0) < 0.87
