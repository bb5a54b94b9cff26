from __future__ import annotations

import json

import pytest
from refusals import refuses

from azr_population.errors import UserError
from azr_population.method.members import Member, Rating, Role, Roster


def test_slots_run_through_teachers_then_students() -> None:
    roster = Roster.make(2, 3)
    assert [member.name for member in roster] == [
        "teacher_0",
        "teacher_1",
        "student_0",
        "student_1",
        "student_2",
    ]
    assert [member.slot for member in roster] == list(range(5))
    assert [member.name for member in roster.teachers] == ["teacher_0", "teacher_1"]
    assert roster["student_1"] is list(roster)[3]
    assert {role.value: len(group) for role, group in roster.sub_populations.items()} == {
        "teacher": 2,
        "student": 3,
    }


def test_the_single_agent_is_on_both_sides() -> None:
    roster = Roster.make(0, 0)
    assert len(roster) == 1
    assert roster.teachers == roster.students == [roster["agent_0"]]
    assert list(roster.sub_populations) == [Role.AGENT]


@pytest.mark.parametrize("sizes", [(0, 2), (2, 0), (-1, 1)])
def test_half_a_population_is_refused(sizes: tuple[int, int]) -> None:
    with refuses("population.teachers"):
        Roster.make(*sizes)


def test_an_unknown_member_is_named_with_the_known_ones() -> None:
    with refuses("teacher_9"):
        Roster.make(1, 1)["teacher_9"]


def test_a_checkpoint_restores_every_bit() -> None:
    roster = Roster.make(1, 1)
    roster["student_0"].rating = Rating(25.0 / 3.0, 0.1 + 0.2)
    roster["student_0"].generation = 3
    roster["student_0"].born = 15
    again = Roster.from_json(json.loads(json.dumps(roster.to_json())))
    assert list(again) == list(roster)


def test_gaps_and_twins_are_refused() -> None:
    with pytest.raises(ValueError, match="gaps"):
        Roster([Member("a", Role.TEACHER, 1)])
    with pytest.raises(ValueError, match="same name"):
        Roster([Member("a", Role.TEACHER, 0), Member("a", Role.STUDENT, 1)])


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../../../victim"},
        {"name": "student_0"},
        {"name": None},
        {"role": "critic"},
        {"slot": 7},
        {"slot": "0"},
        {"mu": float("nan")},
        {"sigma": "wide"},
        {"born": -1},
        {"step_sizes": {"full_gaussian.eps": float("inf")}},
    ],
)
def test_stored_members_that_cannot_be_are_refused(change):
    rows = Roster.make(1, 1).to_json()
    rows[0] |= change
    with pytest.raises(UserError, match=r"stored members are damaged|is not a member's name"):
        Roster.from_json(rows)


def test_a_stored_member_that_lacks_something_is_refused():
    for key in ("name", "role", "slot", "mu", "sigma", "generation", "born"):
        rows = Roster.make(1, 1).to_json()
        del rows[0][key]
        with pytest.raises(UserError, match=f"stored members are damaged.*{key}"):
            Roster.from_json(rows)


def test_the_anchor_sets_the_students_mean_and_keeps_every_difference() -> None:
    roster = Roster.make(2, 2)
    for member, mu in zip(roster, (20.0, 26.0, 23.0, 21.0), strict=True):
        member.rating = Rating(mu, 2.0)
    assert roster.recenter_ratings(25.0) == 3.0
    assert [member.rating for member in roster] == [Rating(mu, 2.0) for mu in (23, 29, 26, 24)]
    assert roster.recenter_ratings(25.0) == 0.0
