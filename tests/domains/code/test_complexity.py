import math
import warnings

import numpy as np
import pytest

from azr_population.domains.code.complexity import (
    DESCRIPTORS,
    MEASURES,
    SPACE,
    argument_kinds,
    data_descriptors,
    measures,
)

BRANCHES = """
def f(x, n):  # two decisions and a loop
    if x and n > 2:

        return [i for i in x if i]
    # nothing here
    return n
"""

CLOSURE = """
def f(n):
    def go(k):
        if k < 2 and n:
            return k
        for i in range(k):
            assert i or k
            k = go(i) if i else k
        return k
    return go(n)
"""
METHODS = """
def f(n):
    class Box:
        def __init__(self, x):
            self.x = x
        def get(self):
            if self.x:
                return 1
    return Box(n).get()
"""
ASSIGNMENTS = "def f(x, *y):\n    a, b = x, y\n    for a in b:\n        b += a\n    return b"


@pytest.mark.parametrize(
    ("program", "nodes", "depth", "cyclomatic", "lines", "variables"),
    [
        # FunctionDef, arguments, arg, Return, Name; the longest path is FunctionDef-arguments-arg.
        ("def f(x):\n    return x\n", 5, 3, 1, 2, 1),
        (ASSIGNMENTS, 20, 4, 2, 5, 4),
        # if, and, the comprehension's loop and its condition, plus one.
        (BRANCHES, 21, 6, 5, 4, 3),
        ("", 0, 0, 1, 0, 0),
        # Two ifs, an and, a loop and an assert's or, wherever they stand.
        (CLOSURE, 40, 7, 7, 9, 3),
        (METHODS, 26, 6, 2, 8, 3),
        ("x = 1\n\x0cy = 2\r\nz = 3\rw = 4", 12, 2, 1, 4, 4),
    ],
)
def test_measures_of_size(program, nodes, depth, cyclomatic, lines, variables):
    assert list(measures(program)) == [measure.name for measure in MEASURES]
    assert [*measures(program).values()][:5] == [nodes, depth, cyclomatic, lines, variables]


def test_odd_programs_warn_nobody():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measures("def f(x):\n    return x is 1 or '\\d'") and argument_kinds(r"'\d unseen'")


@pytest.mark.parametrize(
    ("program", "volume"),
    [
        ("", 0.0),
        ("def f(s):\n    return s.upper()", 0.0),
        # n + 1: one operator and two operands, three different things.
        ("def f(n):\n    return n + 1", 3 * math.log2(3)),
        # Two operators; n, 1 and the product n * 2, which is an operand of its own.
        ("def f(n):\n    return n * 2 + 1", 6 * math.log2(6)),
    ],
)
def test_halsteads_volume_as_radon_counts(program, volume):
    assert measures(program)["halstead_volume"] == pytest.approx(volume)


PROGRAM = """
def f(a, n):
    x = [v + n for v in a if v > 2]
    return sorted(x)[0]
"""


def test_a_program_and_its_data():
    values = SPACE.point({"program": PROGRAM, "inputs": ["[1, 3], 2"], "outputs": ["5"]})
    place = dict(zip([descriptor.name for descriptor in DESCRIPTORS], values, strict=True))
    # 24 nodes; one each of v + n, v > 2, the loop, sorted(x) and [0].
    assert place["size"] == pytest.approx(np.log2(24))
    assert place["depth"] == 6.0 and place["branching"] == pytest.approx(np.log2(3))
    for group in ("arithmetic", "logic", "iteration", "calls", "access"):
        assert place[group] == pytest.approx(0.2)
    assert place["arguments"] == 2.0
    assert (place["takes number"], place["takes text"], place["takes collection"]) == (0.5, 0, 0.5)
    assert (place["gives number"], place["gives text"], place["gives collection"]) == (1, 0, 0)


def test_several_inputs_count_together():
    task = {"inputs": ["1", "'a', 2"], "outputs": ["'x'", "None"]}
    assert data_descriptors(task) == pytest.approx((1.5, 2 / 3, 1 / 3, 0, 0, 0.5, 0))
    assert data_descriptors({}) == data_descriptors({"inputs": 3, "outputs": None}) == (0.0,) * 7


@pytest.mark.parametrize(
    ("literal", "kind"),
    [
        *(("3", "number"), ("-2.5", "number"), ("True", "number"), ("(1+2j)", "number")),
        *(("'a'", "text"), ("b'x'", "text"), ("''", "text"), ("frozenset({1})", "collection")),
        *(("[1]", "collection"), ("(1, 2)", "collection"), ("set()", "collection")),
        *(("{}", "collection"), ("None", ""), ("inf", "number"), ("nan", "number")),
    ],
)
def test_kinds_of_outputs(literal, kind):
    assert argument_kinds(literal) == (kind,)


def test_scaling_cuts_to_the_bounds():
    low = np.array([[descriptor.low for descriptor in DESCRIPTORS]])
    high = np.array([[descriptor.high for descriptor in DESCRIPTORS]])
    weight = [[descriptor.weight for descriptor in DESCRIPTORS]]
    np.testing.assert_allclose(SPACE.scale(low - 5), 0.0)
    np.testing.assert_allclose(SPACE.scale(high + 5), weight)
    np.testing.assert_allclose(SPACE.scale((low + high) / 2), np.array(weight) / 2)
