from __future__ import annotations

import pytest
from refusals import refuses

from azr_population.method.matchmaking import WEIGHTINGS, Matchmaker, Odds
from azr_population.method.members import Rating, RatingSystem, Roster


@pytest.mark.parametrize(
    ("name", "expected"),
    [("balanced", 0.16), ("quality", 0.3), ("hard", 0.64), ("uniform", 1.0)],
)
def test_weights_of_a_student_that_wins_one_game_in_five(name: str, expected: float) -> None:
    assert WEIGHTINGS.find(name).function(Odds(p=0.2, quality=0.3)) == pytest.approx(expected)


def test_every_weighting_says_where_it_comes_from() -> None:
    assert [entry.name for entry in WEIGHTINGS] == ["balanced", "quality", "hard", "uniform"]
    assert all(entry.reference for entry in WEIGHTINGS)


def test_an_unknown_weighting_lists_the_valid_ones() -> None:
    with refuses("matchmaking.weighting"):
        Matchmaker(RatingSystem(), "balancd")


def test_options_reach_the_weighting_and_wrong_ones_are_refused() -> None:
    roster = Roster.make(1, 1)
    maker = Matchmaker(RatingSystem(), "hard", {"k": 3.0})
    assert maker.weights(roster.teachers, roster.students)[0, 0] == pytest.approx(0.125)
    with refuses("matchmaking.options.k"):
        Matchmaker(RatingSystem(), "uniform", {"k": 3.0})
    with refuses("matchmaking.options.k"):
        Matchmaker(RatingSystem(), "hard", {"k": -1.0})


def test_p_is_the_students_chance() -> None:
    roster = Roster.make(2, 1)
    roster["teacher_0"].rating = Rating(40.0, 1.0)
    roster["teacher_1"].rating = Rating(25.0, 1.0)
    roster["student_0"].rating = Rating(25.0, 1.0)
    strong, equal = (
        Matchmaker(RatingSystem()).odds(teacher, roster["student_0"]) for teacher in roster.teachers
    )
    assert strong.p < 0.01
    assert equal.p == 0.5
    hard = Matchmaker(RatingSystem(), "hard").weights(roster.teachers, roster.students)
    assert hard[0, 0] > 0.98 > 0.25 == hard[1, 0]
