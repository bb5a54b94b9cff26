from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azr_population.method import matchmaking
from azr_population.method.matchmaking import Matchmaker, draw_pairs
from azr_population.method.members import RatingSystem, Roster

SAMPLES = 4000
Sampler = Callable[[np.ndarray, np.random.Generator], list[tuple[int, int]]]


def exact_distribution(weights: np.ndarray) -> dict[tuple[tuple[int, int], ...], float]:
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


def distance(weights: np.ndarray, samples: list[list[tuple[int, int]]]) -> float:
    """Total variation distance between the samples' frequencies and the exact distribution."""
    wanted = exact_distribution(weights)
    seen = Counter(tuple(sample) for sample in samples)
    assert set(seen) <= set(wanted)
    return 0.5 * sum(abs(seen[key] / len(samples) - p) for key, p in wanted.items())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_every_member_gets_the_same_budget(teachers: int, students: int, seed: int) -> None:
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


@pytest.mark.parametrize("size", [(16, 16), (20, 30), (40, 40)])
def test_large_populations_are_drawn_too(size: tuple[int, int]) -> None:
    generator = np.random.default_rng(5)
    pairs = draw_pairs(generator.random(size), generator)
    matches = math.lcm(*size)
    assert len(set(pairs)) == matches
    assert set(Counter(t for t, _ in pairs).values()) == {matches // size[0]}
    assert set(Counter(s for _, s in pairs).values()) == {matches // size[1]}


@pytest.mark.parametrize("size", [(3, 3), (4, 4), (4, 2), (2, 4), (3, 5)])
def test_the_draw_has_the_probability_of_its_product(size: tuple[int, int]) -> None:
    generator = np.random.default_rng(11)
    weights = generator.random(size) + 0.05
    samples = [draw_pairs(weights, generator) for _ in range(SAMPLES)]
    # A sample of 4000 from at most 24 likely outcomes lies about 0.02 from its distribution.
    assert distance(weights, samples) < 0.06


@pytest.mark.parametrize("sample", [matchmaking._exact, matchmaking._swap_chain])
def test_unequal_populations_meet_as_often_as_the_weights_say(sample: Sampler) -> None:
    generator = np.random.default_rng(14)
    weights = matchmaking._normalised(generator.random((4, 6)) + 0.05)
    wanted, met = np.zeros((4, 6)), np.zeros((4, 6))
    for pairs, p in exact_distribution(weights).items():
        wanted[tuple(zip(*pairs, strict=True))] += p
    for _ in range(600):
        met[tuple(zip(*sample(weights, generator), strict=True))] += 1 / 600
    # 24 frequencies with a standard error of at most 0.02 each.
    np.testing.assert_allclose(met, wanted, atol=0.07)


def test_the_markov_chain_has_the_same_distribution() -> None:
    generator = np.random.default_rng(12)
    weights = matchmaking._normalised(generator.random((4, 4)) + 0.05)
    samples = [sorted(matchmaking._swap_chain(weights, generator)) for _ in range(SAMPLES)]
    assert distance(weights, samples) < 0.06


def test_a_heavy_pairing_is_met_as_often_as_its_weight_says() -> None:
    # Two draws exist: {00, 11} with 3 * 1 and {01, 10} with 1 * 1; so 3/4 of the draws hold 00.
    generator = np.random.default_rng(13)
    weights = np.array([[3.0, 1.0], [1.0, 1.0]])
    hits = sum((0, 0) in draw_pairs(weights, generator) for _ in range(SAMPLES))
    assert hits / SAMPLES == pytest.approx(0.75, abs=0.03)


def test_impossible_weights_still_give_a_complete_draw() -> None:
    # Both teachers want student 0 only.
    pairs = draw_pairs(np.array([[1.0, 0.0], [1.0, 0.0]]), np.random.default_rng(1))
    assert pairs in ([(0, 0), (1, 1)], [(0, 1), (1, 0)])
    assert len(draw_pairs(np.zeros((3, 3)), np.random.default_rng(1))) == 3


def test_a_seed_repeats_the_draw() -> None:
    weights = np.random.default_rng(0).random((8, 8))
    one, other = (
        [draw_pairs(weights, generator) for _ in range(5)]
        for generator in (np.random.default_rng(3), np.random.default_rng(3))
    )
    assert one == other


@pytest.mark.parametrize("weights", [[[np.nan]], [[-1.0]], [[np.inf]], [1.0], np.ones((0, 2))])
def test_weights_that_are_none_are_refused(weights: object) -> None:
    with pytest.raises(ValueError, match="weights must be"):
        draw_pairs(weights, np.random.default_rng(0))  # type: ignore[arg-type]


def test_a_matchmaker_pairs_members() -> None:
    roster = Roster.make(4, 2)
    matches = Matchmaker(RatingSystem()).draw(
        roster.teachers, roster.students, np.random.default_rng(0)
    )
    assert [match.teacher.name for match in matches] == [f"teacher_{i}" for i in range(4)]
    assert Counter(match.student.name for match in matches) == {"student_0": 2, "student_1": 2}


def test_the_single_agent_meets_itself() -> None:
    roster = Roster.make(0, 0)
    (match,) = Matchmaker(RatingSystem()).draw(
        roster.teachers, roster.students, np.random.default_rng(0)
    )
    assert match.teacher is match.student is roster["agent_0"]
