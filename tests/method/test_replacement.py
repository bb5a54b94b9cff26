"""Who is replaced by whose children: fitness, selection, replacement."""

import copy
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azr_population.config.schema import EvolutionConfig
from azr_population.method.members import Member, Rating, Role, Roster
from azr_population.method.replacement import (
    ELITES,
    FITNESS,
    choose,
    inherited_rating,
    ranked,
    truncation,
)

MEMBER = Member("student_0", Role.STUDENT, 0, Rating(28.0, 2.0))


@pytest.mark.parametrize(("name", "value"), [("conservative_rating", 22.0), ("mean_reward", 0.25)])
def test_values(name, value):
    assert FITNESS[name](MEMBER, [0.0, 0.5]) == pytest.approx(value)


def test_a_member_without_rewards_is_the_least_fit():
    assert FITNESS["mean_reward"](MEMBER, []) == float("-inf")


VALUES = np.array([1.0, 4.0, 2.0, 3.0])
DRAWS = 4000


def test_ranking_puts_what_is_unknown_last():
    assert ranked(np.array([1.0, np.nan, 3.0, -np.inf])) == [2, 0, 1, 3]


def test_a_parent_is_any_of_the_better_half():
    generator = np.random.default_rng(21)
    seen = Counter(i for _ in range(DRAWS) for i in truncation(VALUES, 1, generator))
    assert [seen[i] / DRAWS for i in range(4)] == pytest.approx([0, 0.5, 0, 0.5], abs=0.03)
    assert truncation(VALUES, 2, generator) == [1, 3]


def training(**options):
    return EvolutionConfig(**{"grace_period": 0, **options})


def replacements(pbt, members, generator, step=0):
    fitness = [FITNESS[pbt.fitness](member, ()) for member in members]
    return choose(pbt, members, fitness, generator, step)


def students(*mus):
    members = Roster.make(1, len(mus)).students
    for member, mu in zip(members, mus, strict=True):
        member.rating = Rating(mu, 1.0)
    return members


def test_the_worst_makes_room_for_a_child_of_the_two_best():
    members = students(20, 30, 25, 28)
    before = copy.deepcopy(members)
    (chosen,) = replacements(training(), members, np.random.default_rng(0))
    assert chosen.victim.name == "student_0"
    # Truncation keeps the better half of the three survivors, rounded up; the fitter comes first.
    assert [parent.name for parent in chosen.parents] == ["student_1", "student_3"]
    assert chosen.victim_fitness == 17.0
    assert chosen.parent_fitness == (27.0, 25.0)
    assert members == before


@pytest.mark.parametrize(
    ("size", "fraction", "expected"),
    [(1, 0.25, 0), (2, 0.25, 1), (4, 0.25, 1), (6, 0.25, 2), (8, 0.25, 2), (4, 1.0, 3), (4, 0, 0)],
)
def test_how_many_are_replaced(size, fraction, expected):
    pbt = training(replace_fraction=fraction)
    chosen = replacements(pbt, students(*range(size)), np.random.default_rng(0))
    assert len(chosen) == expected


@settings(max_examples=80, deadline=None)
@given(
    mus=st.lists(st.floats(0, 50) | st.just(float("nan")), min_size=1, max_size=8),
    fraction=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_parents_and_the_best_always_survive(mus, fraction, seed):
    pbt = training(replace_fraction=fraction)
    members = students(*mus)
    chosen = replacements(pbt, members, np.random.default_rng(seed))
    victims = [row.victim.name for row in chosen]
    assert len(set(victims)) == len(victims) <= max(0, len(members) - ELITES)
    for row in chosen:
        assert 1 <= len({parent.name for parent in row.parents}) == len(row.parents) <= 2
        assert not {parent.name for parent in row.parents} & set(victims)
    fitness = [member.rating.conservative for member in members]
    finite = [value for value in fitness if value == value]
    if finite:
        assert members[fitness.index(max(finite))].name not in victims
    again = replacements(pbt, members, np.random.default_rng(seed))
    assert [(r.victim.name, [p.name for p in r.parents]) for r in again] == [
        (r.victim.name, [p.name for p in r.parents]) for r in chosen
    ]


def test_a_child_inherits_the_mean_and_doubt():
    rating = inherited_rating([Rating(30.0, 2.5), Rating(26.0, 2.5)])
    assert (rating.mu, rating.sigma) == pytest.approx((28.0, (2.5**2 + (25 / 6) ** 2) ** 0.5))
    doubtful = inherited_rating([Rating(30.0, 8.0)])
    assert doubtful == Rating(30.0, 25.0 / 3.0)


def test_a_child_is_not_replaced_before_it_is_ready():
    members = students(30, 20, 10, 5)
    members[3].generation, members[3].born = 1, 10
    pbt = training(grace_period=20)
    for step, victim in ((15, 2), (29, 2), (30, 3)):
        (chosen,) = replacements(pbt, members, np.random.default_rng(0), step)
        assert chosen.victim is members[victim]
    # Nobody goes when all but the elite are too young; founders of the same age are not spared.
    for member in members:
        member.generation, member.born = 1, 10
    assert replacements(pbt, members, np.random.default_rng(0), 20) == []
    members[1].generation = 0
    (chosen,) = replacements(pbt, members, np.random.default_rng(0), 20)
    assert chosen.victim is members[1]
