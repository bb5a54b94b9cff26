"""The short form of perf/calibration.py: what is stated is seldom false."""

import calibration
import numpy as np
import pytest

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
    """Of 200, 5.5% and 6% are exceeded by chance alone up to 10%: four standard errors."""
    rates = calibration.scenarios(SHORT)[name](np.random.default_rng(2))
    assert not calibration.failing({name: rates}, 0.055 + 0.06, 0.94 - 0.06)


def test_a_rule_that_is_too_sure_is_found(monkeypatch):
    """Were two seeds enough, or the degrees of freedom too many, the simulation would say so."""
    small = "equal arms, 3 and 12 seeds"
    monkeypatch.setattr("scipy.special.stdtrit", lambda freedom, q: 1.2)
    monkeypatch.setattr("scipy.special.stdtr", lambda freedom, t: 0.01 if t < -1.2 else 0.5)
    rates = calibration.scenarios(SHORT)[small](np.random.default_rng(2))
    assert calibration.failing({small: rates}, 0.055 + 0.06, 0.94 - 0.06)
