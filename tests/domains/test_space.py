import numpy as np

from azr_population.domains.known import DOMAINS, find_domain
from azr_population.domains.puzzles.measures import SPACE, samples

SPACES = [space for entry in DOMAINS if (space := find_domain(entry.name).space)]


def test_samples_lie_within_bounds_and_are_the_same_again():
    for space in SPACES:
        points = space.samples(3, 500)
        np.testing.assert_array_equal(points, space.samples(3, 500))
        low, high = ([d[i] for d in space.descriptors] for i in (1, 2))
        assert (points >= low).all() and (points <= high).all()
        assert len(set(space.place(points).tolist())) > 100


def test_axes_and_panels_are_descriptors():
    for space in SPACES:
        assert {*space.axes, *space.panels} <= {descriptor.name for descriptor in space.descriptors}


def test_what_does_not_parse_has_no_place():
    for task in ({"program": "def sat(:", "inputs": ["1"]}, {"program": 3}, {}):
        assert SPACE.point(task) is None
    assert SPACE.point({"program": "def sat(x): return x > 1"}) is not None
    assert samples(1, 3).shape == (3, len(SPACE.descriptors))
