"""Weightings, the draw of a step's matches, and the rows of each match."""

import math
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azr_population.config.load import load_config
from azr_population.config.schema import MatchmakingConfig
from azr_population.method import matchmaking
from azr_population.method.config_check import evolution_note, replacement_line
from azr_population.method.matchmaking import Match, Matchmaker, draw_pairs
from azr_population.method.members import Rating, Roster


def matchmaker(**settings):
    return Matchmaker(MatchmakingConfig(**settings))


SAMPLES = 4000


def exact_distribution(weights):
    """Every draw with its probability, by brute force over all sets of pairs."""
    teachers, students = weights.shape
    matches = math.lcm(teachers, students)
    per_teacher, per_student = matches // teachers, matches // students
    masses = {}
    for rows in product(combinations(range(students), per_teacher), repeat=teachers):
        pairs = tuple((t, s) for t, row in enumerate(rows) for s in row)
        if (
            all(n == per_student for n in Counter(s for _, s in pairs).values())
            and len({s for _, s in pairs}) == students
        ):
            masses[pairs] = math.prod(weights[pair] for pair in pairs)
    total = sum(masses.values())
    return {pairs: mass / total for pairs, mass in masses.items()}


def distance(weights, samples):
    """Total variation distance between the samples' frequencies and the exact distribution."""
    expected = exact_distribution(weights)
    seen = Counter(tuple(sample) for sample in samples)
    assert set(seen) <= set(expected)
    return 0.5 * sum(abs(seen[key] / len(samples) - p) for key, p in expected.items())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_every_member_gets_the_same_budget(teachers, students, seed):
    generator = np.random.default_rng(seed)
    weights = generator.random((teachers, students)) * generator.integers(
        0, 2, (teachers, students)
    )
    pairs = draw_pairs(weights, generator)
    matches = math.lcm(teachers, students)
    assert len(set(pairs)) == len(pairs) == matches
    assert set(Counter(t for t, _ in pairs).values()) == {matches // teachers}
    assert set(Counter(s for _, s in pairs).values()) == {matches // students}
    assert {t for t, _ in pairs} == set(range(teachers))
    assert {s for _, s in pairs} == set(range(students))


@pytest.mark.parametrize("size", [(3, 3), (4, 4), (4, 2), (2, 4), (3, 5)])
def test_the_draw_has_the_probability_of_its_product(size):
    generator = np.random.default_rng(11)
    weights = generator.random(size) + 0.05
    samples = [draw_pairs(weights, generator) for _ in range(SAMPLES)]
    # A sample of 4000 from at most 24 likely outcomes lies about 0.02 from its distribution.
    assert distance(weights, samples) < 0.06


@pytest.mark.parametrize("sample", [matchmaking._exact, matchmaking._swap_chain])
def test_unequal_populations_meet_as_often_as_the_weights_say(sample):
    generator = np.random.default_rng(14)
    weights = matchmaking._normalised(generator.random((4, 6)) + 0.05)
    expected, met = np.zeros((4, 6)), np.zeros((4, 6))
    for pairs, p in exact_distribution(weights).items():
        expected[tuple(zip(*pairs, strict=True))] += p
    for _ in range(600):
        met[tuple(zip(*sample(weights, generator), strict=True))] += 1 / 600
    # 24 frequencies with a standard error of at most 0.02 each.
    np.testing.assert_allclose(met, expected, atol=0.07)


def test_impossible_weights_still_give_a_complete_draw():
    # Both teachers want student 0 only.
    pairs = draw_pairs(np.array([[1.0, 0.0], [1.0, 0.0]]), np.random.default_rng(1))
    assert pairs in ([(0, 0), (1, 1)], [(0, 1), (1, 0)])
    assert len(draw_pairs(np.zeros((3, 3)), np.random.default_rng(1))) == 3


@pytest.mark.parametrize("weight", [np.nan, -1.0, np.inf])
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(ValueError):
        draw_pairs(np.array([[weight]]), np.random.default_rng(0))


@pytest.mark.parametrize(("name", "expected"), [("balanced", 0.16), ("uniform", 1.0)])
def test_weights_of_a_student_that_wins_one_game_in_five(name, expected):
    assert matchmaker(weighting=name).weigh(0.2) == pytest.approx(expected)


def test_p_is_the_students_chance():
    roster = Roster.make(2, 1)
    roster["teacher_0"].rating = Rating(40.0, 1.0)
    roster["teacher_1"].rating = Rating(25.0, 1.0)
    roster["student_0"].rating = Rating(25.0, 1.0)
    strong, equal = (
        matchmaker().win_probability(Match(teacher, roster["student_0"]))
        for teacher in roster.teachers
    )
    assert strong < 0.01
    assert equal == 0.5
    ((hard,), (even,)) = matchmaker().weights(roster.teachers, roster.students)
    assert hard < 0.01 and even == 0.25


def test_members_meet_their_equals():
    roster = Roster.make(2, 2)
    for name in ("teacher_1", "student_0"):
        roster[name].rating = Rating(60.0, 1.0)
    for name in ("teacher_0", "student_1"):
        roster[name].rating = Rating(20.0, 1.0)
    generator = np.random.default_rng(1)
    for _ in range(30):
        matches = matchmaker().draw(roster.teachers, roster.students, generator)
        assert [(match.teacher.name, match.student.name) for match in matches] == [
            ("teacher_0", "student_1"),
            ("teacher_1", "student_0"),
        ]


@pytest.mark.parametrize(
    ("interval", "ready", "members", "said"),
    [
        (5, 20, 4, "it has to be below 20"),
        (5, 19, 4, None),
        (5, 10, 2, "it has to be below 10"),
        (0, 20, 4, None),
        (5, 20, 1, None),
    ],
)
def test_a_run_without_a_choice_of_victims_is_told(interval, ready, members, said):
    overrides = [f"evolution.interval={interval}", f"evolution.grace_period={ready}"]
    line = evolution_note(load_config(overrides).evolution, members, members)
    assert (line is None) == (said is None)
    assert said is None or (said in line and f"evolution.grace_period={ready}" in line)


@pytest.mark.parametrize(("interval", "members"), [(0, 4), (5, 1)])
def test_hyperparameters_of_a_run_that_replaces_nobody_do_not_evolve(interval, members):
    overrides = ["evolution=pbt_hyper", f"evolution.interval={interval}"]
    line = evolution_note(load_config(overrides).evolution, members, members)
    assert "evolution.hyperparameters" in line and "keep the lr they draw" in line


@pytest.mark.parametrize(
    ("fraction", "said"),
    [
        (0, "nobody is replaced"),
        (0.25, "every 5 steps 1 of 2 teachers and 1 of 4 students replaced, by 8 operators"),
        (1, "every 5 steps 1 of 2 teachers and 3 of 4 students replaced, by 8 operators"),
    ],
)
def test_the_plan_says_how_many_are_replaced(fraction, said):
    overrides = [f"evolution.replace_fraction={fraction}", "evolution.interval=5"]
    evolution = load_config([*overrides, "evolution.grace_period=0"]).evolution
    assert replacement_line(evolution, 2, 4) == said


@pytest.mark.parametrize("arm", ["2t2s", "4t4s", "8t8s"])
def test_the_arms_have_a_choice(arm):
    config = load_config([f"population={arm}"])
    population = config.population
    assert evolution_note(config.evolution, population.teachers, population.students) is None


@pytest.mark.parametrize(
    ("sizes", "role", "keeps"),
    [((1, 6), "student", False), ((6, 1), "student", True), ((6, 1), "teacher", False)],
)
def test_only_members_whose_role_is_replaced_have_hyperparameters_that_evolve(sizes, role, keeps):
    overrides = ["evolution=pbt_hyper", f"evolution.hyperparameters.lr.roles=[{role}]"]
    evolution = load_config(overrides).evolution
    assert bool(evolution_note(evolution, *sizes)) == keeps
    assert "nobody" not in replacement_line(evolution, *sizes)
