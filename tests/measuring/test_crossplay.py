"""What a cross-play says, from made-up solve rates whose answer is known."""

import math
from pathlib import Path

import numpy as np
import pytest

from azr_population.measuring.crossplay import CrossPlay
from azr_population.measuring.stored import StoredMember
from azr_population.method.members import Rating, RatingSystem


def members(role, *steps, rating=None):
    return tuple(
        StoredMember("run", step, f"{role}_{n}", Path(), rating) for n, step in enumerate(steps)
    )


def outcome_of(rates, teachers=(10, 20), students=(10, 20)):
    return CrossPlay(
        members("teacher", *teachers),
        members("student", *students),
        tuple(rates),
        rates[0].shape[1],
    )


def test_slopes_are_against_the_earliest_of_the_other_side():
    rates = [np.tile([[0.2], [0.3]], 10), np.tile([[0.1], [0.25]], 10)]
    slopes = outcome_of(rates, (50, 100), (50, 100)).slopes()["run"]
    assert slopes["student"] == pytest.approx(0.2) and slopes["teacher"] == pytest.approx(0.2)
    assert outcome_of(rates, (50, 50), (50, 50)).slopes() == {"run": {}}


def test_calibration_is_of_those_that_were_rated_at_one_step():
    strong, weak = Rating(35.0, 1.0), Rating(15.0, 1.0)
    teachers = (*members("teacher", 10, rating=weak), *members("teacher", 20, rating=weak))
    students = members("student", 10, rating=strong)
    rates = (np.array([[1.0, 1.0, 1.0, 0.0]]), np.zeros((1, 4)))
    skill, constant, games = CrossPlay(teachers, students, rates, 4).calibration()
    p = RatingSystem().win_probability(strong, weak)
    assert games == 4 and constant == pytest.approx(0.1875)
    assert skill == pytest.approx((3 * (1 - p) ** 2 + p**2) / 4)
    unrated = CrossPlay(members("teacher", 1), members("student", 1), rates[:1], 4).calibration()
    assert unrated[2] == 0 and math.isnan(unrated[0])


def test_a_teacher_without_a_valid_task_is_left_out():
    rates = [np.tile([[0.2], [0.3]], 10), np.zeros((2, 0))]
    outcome = outcome_of(rates, (50, 100), (50, 100))
    assert np.isnan(outcome.matrix[1]).all()
    assert list(outcome.slopes()["run"]) == ["student"]
