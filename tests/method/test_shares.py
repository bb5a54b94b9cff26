"""Budgets: rows of roles, and the dealing of rows to matches."""

from collections import Counter

import pytest

from azr_population.method.batch_split import (
    MatchAssigner,
    proposal_rows,
    solving_rows,
    split_evenly,
)
from azr_population.method.matchmaking import Match
from azr_population.method.members import Member, Role, Roster


def test_shares():
    assert split_evenly(10, 3) == [4, 3, 3]
    assert split_evenly(2, 3) == [1, 1, 0]


def test_the_single_agent_splits_its_rows():
    assert proposal_rows(7, Role.AGENT) + solving_rows(7, Role.AGENT) == 7
    assert proposal_rows(7, Role.TEACHER) == solving_rows(7, Role.STUDENT) == 7


@pytest.fixture
def dealer():
    """One teacher that meets three students."""
    roster = Roster.make(1, 3)
    return MatchAssigner([Match(roster["teacher_0"], student) for student in roster.students])


def test_a_teachers_rows_are_shared_out_over_its_matches_in_order(dealer):
    met = [match.student.name for match in dealer.assign([0] * 7)]
    assert Counter(met) == {"student_0": 3, "student_1": 2, "student_2": 2}
    assert met == sorted(met)


def test_what_is_left_over_goes_to_who_had_least(dealer):
    met = Counter(match.student.name for _ in range(3) for match in dealer.assign([0] * 4))
    assert met == {"student_0": 4, "student_1": 4, "student_2": 4}


def test_an_agent_meets_itself():
    agent = Member("agent_0", Role.AGENT, 0)
    dealt = MatchAssigner([Match(agent, agent)]).assign([0, 0])
    assert [match.teacher is match.student is agent for match in dealt] == [True, True]
