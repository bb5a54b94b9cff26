"""The statistics of recipes/questions/what_for, on answers with known rates."""

from random import Random
from statistics import fmean, stdev

import pytest

from azr_population.analysis.statistics import Estimate


@pytest.fixture
def what_for(recipe_script):
    return recipe_script("questions/what_for/what_for.py")


def test_pass_at_4_of_independent_students_is_unbiased(what_for):
    draw = Random(1)
    rights = [[float(draw.random() < 0.3) for _ in range(4000)] for _ in range(6)]
    values = what_for.of_independent(rights)
    assert len(values) == 6 and fmean(values) == pytest.approx(1 - 0.7**4, abs=0.02)


def test_runs_that_differ_spread_the_pseudo_values(what_for):
    # One of six students answers all 100 tasks, the others none: 4 of 6 sets have it.
    values = what_for.of_independent([[1.0] * 100] + [[0.0] * 100] * 5)
    assert fmean(values) == pytest.approx(4 / 6)
    # Without that run no set has it; without another 4 of 5 have.
    assert values == pytest.approx([4.0, *[0.0] * 5]) and stdev(values) > 1


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (0.021, 0.1, "more"),
        (-0.1, -0.021, "less"),
        (-0.019, 0.019, "nothing"),
        (-0.019, 0.021, "open"),
        (float("nan"), float("nan"), "open"),
    ],
)
def test_an_answer_is_where_the_interval_lies(what_for, low, high, answer):
    assert what_for.answer(Estimate((low + high) / 2, low, high, (6,))) == answer
