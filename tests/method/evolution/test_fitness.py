from __future__ import annotations

import pytest
from refusals import refuses

from azr_population.method.evolution.replacement import FITNESS
from azr_population.method.members import Member, Rating, Role

MEMBER = Member("student_0", Role.STUDENT, 0, Rating(28.0, 2.0))


@pytest.mark.parametrize(
    ("name", "value"), [("conservative_rating", 22.0), ("mu", 28.0), ("mean_reward", 0.25)]
)
def test_values(name: str, value: float) -> None:
    assert FITNESS.find(name).function(MEMBER, [0.0, 0.5]) == pytest.approx(value)


def test_a_member_without_rewards_is_the_least_fit() -> None:
    assert FITNESS.find("mean_reward").function(MEMBER, []) == float("-inf")


def test_unknown_names_list_the_valid_ones() -> None:
    with refuses("evolution.fitness"):
        FITNESS.find("elo")
