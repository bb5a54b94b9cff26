"""How much of what an eval says of members is skill."""

import numpy as np
import pytest

from azr_population.method.held_out_eval import reliability


def test_reliability_and_spread_are_those_of_a_known_table() -> None:
    # Means .75, .5, .25: a mean square of 1/4. Residuals' squares add up to 5/6, for 6 degrees of
    # freedom.
    table = [[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 0, 0]]
    reliable, spread = reliability(table)
    assert reliable == pytest.approx(1 - (5 / 36) / 0.25)
    assert spread == pytest.approx(((0.25 - 5 / 36) / 4) ** 0.5)


def test_members_of_one_skill_have_no_reliability_and_those_that_differ_have() -> None:
    generator = np.random.default_rng(1)
    hard = generator.uniform(0.2, 0.8, 2000)
    alike, unlike = (
        [(generator.uniform(size=2000) < hard + shift).tolist() for shift in shifts]
        for shifts in ([0.0] * 4, [-0.06, -0.02, 0.02, 0.06])
    )
    noisy, known = reliability(alike), reliability(unlike)
    assert noisy and noisy[0] < 0.6
    assert known and known[0] > 0.85
    # The sample's sd of those shifts is .0516.
    assert known[1] == pytest.approx(0.0516, abs=0.02)


def test_where_there_is_no_telling_there_is_no_number() -> None:
    assert reliability([]) is reliability([[1.0, 0.0]]) is reliability([[1.0], [0.0]]) is None
    assert reliability([[1.0, 0.0], [1.0]]) is None
    assert reliability([[1.0, 0.0], [0.0, 1.0]]) is None
