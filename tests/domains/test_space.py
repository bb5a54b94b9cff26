from __future__ import annotations

import numpy as np

from azr_population.domains.known import DOMAINS, find_domain
from azr_population.domains.puzzles.measures import SPACE, samples
from azr_population.domains.space import Space

SPACES = [space for entry in DOMAINS if (space := find_domain(entry.name).space)]


def test_samples_lie_within_bounds_and_are_the_same_again() -> None:
    for space in SPACES:
        points = space.samples(3, 500)
        np.testing.assert_array_equal(points, space.samples(3, 500))
        low, high = ([d[i] for d in space.descriptors] for i in (1, 2))
        assert (points >= low).all() and (points <= high).all()
        assert len(set(space.place(points).tolist())) > 100


def test_axes_and_panels_are_descriptors() -> None:
    for space in SPACES:
        assert {*space.axes, *space.panels} <= {descriptor.name for descriptor in space.descriptors}


def puzzle_at(space: Space, program: str, witness: str) -> str:
    point = space.point({"program": program, "inputs": [witness]})
    assert point is not None
    return space.words(dict(zip((d.name for d in space.descriptors), point, strict=True)))


def test_a_puzzle_in_words() -> None:
    words = puzzle_at(SPACE, "def sat(x, a=119):\n    return x % a == 7 and x > 999", "1078")
    assert words.startswith("find a number; about 3 operations, 2 conditions, numbers of 3 digits;")
    assert words.endswith("divisibility")
    words = puzzle_at(SPACE, "def sat(x):\n    return len(x) == 3 and sum(x) == 70", "[1, 2, 67]")
    assert words.startswith("find a collection;") and words.endswith("text and lists")


def test_what_does_not_parse_has_no_place() -> None:
    for task in ({"program": "def sat(:", "inputs": ["1"]}, {"program": 3}, {}):
        assert SPACE.point(task) is None
    assert SPACE.point({"program": "def sat(x): return x > 1"}) is not None
    assert samples(1, 3).shape == (3, len(SPACE.descriptors))
