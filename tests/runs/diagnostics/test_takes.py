import math

import numpy as np
import pytest

from azr_population.runs.diagnostics.takes import TAKES

RISING = [(step, float(step)) for step in range(1, 21)]


def test_early_and_late_are_tenths_of_the_steps():
    assert TAKES["early"](RISING, 20) == 1.5
    assert TAKES["late"](RISING, 20) == 19.5
    assert TAKES["change"](RISING, 20) == 18.0


def test_what_is_measured_seldom_is_taken_at_its_ends():
    exam = [(1, 0.2), (20, 0.3), (40, 0.25)]
    assert TAKES["end"](exam, 40) == 0.25
    assert round(TAKES["gain"](exam, 40), 9) == 0.05
    assert TAKES["early"](exam, 40) == 0.2
    assert TAKES["late"](exam, 40) == 0.25


def test_lowest_and_highest_are_of_a_tenth_in_a_row_not_of_a_single_step():
    curve = [(step, 0.5) for step in range(1, 21)]
    curve[9] = (10, 1.0)
    curve[14] = (15, 0.0)
    assert TAKES["highest"](curve, 20) == 0.75
    assert TAKES["lowest"](curve, 20) == 0.25


def test_one_step_is_enough_for_every_take_but_that_of_swings():
    takes = {name: take([(1, 3.0)], 1) for name, take in TAKES.items()}
    assert math.isnan(takes.pop("oscillation"))
    assert takes == {
        "early": 3.0,
        "late": 3.0,
        "change": 0.0,
        "end": 3.0,
        "gain": 0.0,
        "area": 3.0,
        "lowest": 3.0,
        "highest": 3.0,
    }


def test_a_curve_that_ends_early_has_no_late_value():
    # No valid task from step 11 on: the programs of step 10 are not those of the end.
    assert math.isnan(TAKES["late"](RISING[:10], 20))
    assert math.isnan(TAKES["change"](RISING[:10], 20))
    assert math.isnan(TAKES["early"](RISING[10:], 20))
    assert TAKES["late"](RISING[10:], 20) == 19.5


def test_the_area_is_the_mean_height_between_unequal_steps():
    assert TAKES["area"]([(1, 0.2), (25, 0.2), (100, 0.4)], 100) == pytest.approx(
        (24 * 0.2 + 75 * 0.3) / 99
    )
    assert TAKES["area"]([(25, 0.3)], 100) == 0.3


def test_oscillation_tells_swings_from_noise_and_forgets_the_trend():
    def of(value):
        return TAKES["oscillation"]([(step, value(step)) for step in range(1, 101)], 100)

    noise = np.random.default_rng(1).normal(size=101)
    # cos(2 pi / 20), for a whole number of periods of 20 steps
    assert of(lambda step: math.sin(math.pi * step / 10) + 3 * step) == pytest.approx(
        0.951, abs=0.03
    )
    assert of(lambda step: (-1) ** step) == pytest.approx(-0.99, abs=0.01)
    assert abs(of(lambda step: noise[step] - step)) < 0.2
    assert math.isnan(of(lambda step: 2.0 * step))
    assert math.isnan(TAKES["oscillation"]([(step, noise[step]) for step in range(9)], 9))
