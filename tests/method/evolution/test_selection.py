from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from refusals import refuses

from azr_population.method.evolution.replacement import SELECTION, ranked

FITNESS = np.array([1.0, 4.0, 2.0, 3.0])
DRAWS = 4000


def shares(name: str, count: int = 1, **options: float) -> list[float]:
    """How often each of the four is chosen, per draw."""
    generator = np.random.default_rng(21)
    function = SELECTION.find(name).function
    seen = Counter(i for _ in range(DRAWS) for i in function(FITNESS, count, generator, **options))
    return [seen[i] / DRAWS for i in range(4)]


def test_ranking_puts_what_is_unknown_last() -> None:
    assert ranked(np.array([1.0, np.nan, 3.0, -np.inf])) == [2, 0, 1, 3]


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("truncation", {}, [0.0, 0.5, 0.0, 0.5]),
        ("truncation", {"top": 0.25}, [0.0, 1.0, 0.0, 0.0]),
        # The best of two: C(rank - 1, 1) / C(4, 2).
        ("tournament", {}, [0.0, 3 / 6, 1 / 6, 2 / 6]),
        ("tournament", {"size": 1}, [0.25] * 4),
        ("tournament", {"size": 9}, [0.0, 1.0, 0.0, 0.0]),
        # Above the worst by 0, 3, 1, 2, each plus a tenth of the range 3, over their sum 7.2.
        ("fitness_proportional", {}, [0.3 / 7.2, 3.3 / 7.2, 1.3 / 7.2, 2.3 / 7.2]),
        ("random", {}, [0.25] * 4),
    ],
)
def test_chances_of_one_parent(name: str, options: dict[str, float], expected: list[float]) -> None:
    assert shares(name, **options) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("name", [entry.name for entry in SELECTION])
@pytest.mark.parametrize(
    "fitness",
    [FITNESS, np.zeros(4), np.full(4, -np.inf), np.array([np.nan, 1.0, -np.inf, 2.0])],
)
def test_parents_are_distinct_and_repeatable(name: str, fitness: np.ndarray) -> None:
    function = SELECTION.find(name).function
    for count in range(1, 5):
        chosen = function(fitness, count, np.random.default_rng(count))
        assert len(set(chosen)) == len(chosen) == count
        assert set(chosen) <= set(range(4))
        assert chosen == function(fitness, count, np.random.default_rng(count))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("truncation", {"top": 0.0}),
        ("tournament", {"size": 0}),
        ("fitness_proportional", {"base": 0.0}),
    ],
)
def test_impossible_options_are_refused(name: str, options: dict[str, float]) -> None:
    with refuses("evolution.selection_options"):
        SELECTION.find(name).function(FITNESS, 1, np.random.default_rng(0), **options)


def test_unknown_names_list_the_valid_ones() -> None:
    with refuses("evolution.selection"):
        SELECTION.find("lottery")
