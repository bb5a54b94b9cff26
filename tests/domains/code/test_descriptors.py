from __future__ import annotations

import warnings

import numpy as np
import pytest

from azr_population.domains.code.complexity import measure
from azr_population.domains.code.descriptors import (
    DESCRIPTORS,
    argument_kinds,
    literal_kind,
    of_data,
    of_program,
)
from azr_population.domains.code.source import read_program
from azr_population.domains.code.space import SPACE

PROGRAM = """
def f(a, n):
    x = [v + n for v in a if v > 2]
    return sorted(x)[0]
"""


def test_a_program_and_its_data() -> None:
    tree, measured = read_program(PROGRAM).tree, measure(PROGRAM)
    assert tree is not None and measured is not None
    point = (*of_program(tree, measured), *of_data({"inputs": ["[1, 3], 2"], "outputs": ["5"]}))
    names = [descriptor.name for descriptor in DESCRIPTORS]
    found = dict(zip(names, point, strict=True))
    # 24 nodes; one each of v + n, v > 2, the loop, sorted(x) and [0].
    assert measured.ast_nodes == 24 and found["size"] == pytest.approx(np.log2(24))
    assert found["depth"] == 6.0 and found["branching"] == pytest.approx(np.log2(3))
    for group in ("arithmetic", "logic", "iteration", "calls", "access"):
        assert found[group] == pytest.approx(0.2)
    assert found["arguments"] == 2.0
    assert (found["takes number"], found["takes text"], found["takes collection"]) == (0.5, 0, 0.5)
    assert (found["gives number"], found["gives text"], found["gives collection"]) == (1, 0, 0)


def test_several_inputs_count_together() -> None:
    task = {"inputs": ["1", "'a', 2"], "outputs": ["'x'", "None"]}
    assert of_data(task) == pytest.approx((1.5, 2 / 3, 1 / 3, 0, 0, 0.5, 0))
    assert of_data({}) == of_data({"inputs": 3, "outputs": None}) == (0.0,) * 7


@pytest.mark.parametrize(
    ("literal", "kind"),
    [
        *(("3", "number"), ("-2.5", "number"), ("True", "number"), ("(1+2j)", "number")),
        *(("'a'", "text"), ('"', "text"), ("b'x'", "text"), ("''", "text")),
        *(("[1]", "collection"), ("(1, 2)", "collection"), ("set()", "collection")),
        *(("{}", "collection"), ("None", ""), ("", ""), ("inf", "number")),
    ],
)
def test_kinds_of_outputs(literal: str, kind: str) -> None:
    assert literal_kind(literal) == kind


@pytest.mark.parametrize(
    ("source", "kinds"),
    [
        ("[1, 2], 'a', -3", ("collection", "text", "number")),
        ("key={'a': 1}, other=None", ("collection", "")),
        ("", ()),
        ("1 +", ()),
        ("(", ()),
        ("'\0'", ()),
    ],
)
def test_kinds_of_arguments(source: str, kinds: tuple[str, ...]) -> None:
    assert argument_kinds(source) == kinds


def test_odd_escapes_warn_nobody() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert argument_kinds(r"'\d unseen'") == ("text",)


def test_scaling_cuts_to_the_bounds() -> None:
    low = np.array([[descriptor.low for descriptor in DESCRIPTORS]])
    high = np.array([[descriptor.high for descriptor in DESCRIPTORS]])
    weight = [[descriptor.weight for descriptor in DESCRIPTORS]]
    np.testing.assert_allclose(SPACE.scale(low - 5), 0.0)
    np.testing.assert_allclose(SPACE.scale(high + 5), weight)
    middle = (low + high) / 2
    np.testing.assert_allclose(SPACE.unscale(SPACE.scale(middle)), middle)
