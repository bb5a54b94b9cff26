"""Who is replaced by whose children: fitness, selection, replacement; without an engine."""

import copy
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azr_population.config.schema import EvolutionConfig
from azr_population.method.evolution import (
    ELITES,
    Evolution,
    choose,
    inherited_rating,
    ranked,
    truncation,
)
from azr_population.method.members import Rating, Roster
from azr_population.streams import Streams
from azr_population.weights.breeding import Breeding

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


def students(*mus):
    members = Roster.make(1, len(mus)).students
    for member, mu in zip(members, mus, strict=True):
        member.rating = Rating(mu, 1.0)
    return members


def test_the_worst_makes_room_for_a_child_of_the_two_best():
    members = students(20, 30, 25, 28)
    before = copy.deepcopy(members)
    (chosen,) = choose(training(), members, np.random.default_rng(0))
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
    chosen = choose(pbt, students(*range(size)), np.random.default_rng(0))
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
    chosen = choose(pbt, members, np.random.default_rng(seed))
    victims = [row.victim.name for row in chosen]
    assert len(set(victims)) == len(victims) <= max(0, len(members) - ELITES)
    for row in chosen:
        assert 1 <= len({parent.name for parent in row.parents}) == len(row.parents) <= 2
        assert not {parent.name for parent in row.parents} & set(victims)
    fitness = [member.rating.conservative for member in members]
    finite = [value for value in fitness if value == value]
    if finite:
        assert members[fitness.index(max(finite))].name not in victims
    again = choose(pbt, members, np.random.default_rng(seed))
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
        (chosen,) = choose(pbt, members, np.random.default_rng(0), step)
        assert chosen.victim is members[victim]
    # Nobody goes when all but the elite are too young; founders of the same age are not spared.
    for member in members:
        member.generation, member.born = 1, 10
    assert choose(pbt, members, np.random.default_rng(0), 20) == []
    members[1].generation = 0
    (chosen,) = choose(pbt, members, np.random.default_rng(0), 20)
    assert chosen.victim is members[1]


def evolution(**settings):
    settings = {"interval": 2, "grace_period": 0, "operators": {"full_gaussian": 1.0}, **settings}
    config = EvolutionConfig(**settings)
    return Evolution(config, Streams(1))


def rated():
    """Three teachers and three students, the first the best; fitness is mu - 3 sigma."""
    roster = Roster.make(3, 3)
    for member in roster:
        member.rating = Rating(26.0 - member.slot % 3, 1.0)
    return roster


def by_word(*_):
    """Makes children by word only."""
    return Breeding("full_gaussian", {"eps": 0.2})


def test_children_are_made_by_the_operators_and_options_of_the_run():
    options = {"full_gaussian": {"eps": 0.1}}
    evolved, roster = evolution(options=options), rated()
    asked = []

    def make(replacement, config, seed):
        asked.append((replacement.victim.name, config.operators, config.options))
        return by_word()

    births = evolved.replace(2, roster, make)
    mix = {"full_gaussian": 1.0}
    assert asked == [("teacher_2", mix, options), ("student_2", mix, options)]
    assert [(birth["operator"], birth["options"]) for birth in births] == [
        ("full_gaussian", {"eps": 0.2})
    ] * 2
    assert roster.to_json() == Roster.from_json(json.loads(json.dumps(roster.to_json()))).to_json()


def test_births_leave_the_students_mean_where_it_began_and_change_no_odds():
    evolved, roster = evolution(), rated()
    before = {member.name: member.rating.mu for member in roster}
    births = evolved.replace(2, roster, by_word)
    after = {member.name: member.rating.mu for member in roster}
    assert sum(student.rating.mu for student in roster.students) / 3 == pytest.approx(25.0)
    replaced = {birth["child"]: birth["mu"] for birth in births}
    moved = {before[name] - after[name] for name in after if name not in replaced}
    assert len({round(shift, 9) for shift in moved}) == 1 and min(moved) > 0
    assert replaced == pytest.approx({name: after[name] for name in replaced})


@pytest.mark.parametrize(("operator", "used"), [("full_gaussian", 1), ("dare", 2)])
def test_a_child_inherits_from_those_parents_that_its_operator_used(operator, used):
    evolved, roster = evolution(), rated()
    births = evolved.replace(2, roster, lambda *_: Breeding(operator, {}))
    assert len({birth["seed"] for birth in births}) == 2, "or they would draw the same noise"
    for birth in births:
        child, role = roster[birth["child"]], birth["child"].rpartition("_")[0]
        assert birth["parents"] == [f"{role}_{number}" for number in range(used)]
        assert birth["fitness"] == {"victim": 21.0, "parents": [23.0, 22.0][:used]}
        mean = sum(roster[name].rating.mu for name in birth["parents"]) / used
        assert child.rating.mu == pytest.approx(mean)
        assert (child.generation, child.born) == (1, 2)


@pytest.mark.parametrize(("bounds", "limits"), [(None, (1e-6, 0.1)), ([5e-5, 2e-3], (5e-5, 2e-3))])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_learning_rate_that_evolves_stays_within_its_bounds(bounds, limits, factor):
    lr = {"init": [1e-4, 1e-3], "perturb": [factor], "resample": 0.0, "bounds": bounds}
    evolved, roster = evolution(hyperparameters={"lr": lr}), rated()
    for member in roster:
        evolved.draw_hyperparameters(member)
    for step in range(2, 2000, 2):
        births = evolved.replace(step, roster, by_word)
        for member in roster:  # the child of a child of a child
            newest = member.name in [birth["child"] for birth in births]
            member.rating = Rating(26.0 if newest else 24.0, 1.0)
    rates = [member.hyperparameters["lr"] for member in roster.students]
    assert all(limits[0] <= rate <= limits[1] for rate in rates)
    assert limits[factor > 1] in rates


def test_a_stored_rate_that_does_not_evolve_is_named():
    member = rated().students[0]
    member.hyperparameters["lr"] = 1e-3
    with pytest.raises(ValueError, match=f"{member.name} has a lr, which does not evolve"):
        evolution().check_rates(member)


@pytest.mark.parametrize("bounds", [[1e-3, 1e-2], [1e-5, 5e-4], [1, 0.5], [0, 1], [1e-4]])
def test_bounds_that_leave_out_a_founder_s_rate_are_refused(bounds):
    with pytest.raises(ValueError):
        evolution(hyperparameters={"lr": {"init": [1e-4, 1e-3], "bounds": bounds}})
