from __future__ import annotations

import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azr_population.domains.code.complexity import (
    MEASURES,
    Complexity,
    halstead_volume,
    measure,
    measures,
)
from azr_population.domains.code.source import read_program

BRANCHES = """
def f(x, n):  # two decisions and a loop
    if x and n > 2:

        return [i for i in x if i]
    # nothing here
    return n
"""


def test_a_function_that_returns_its_argument() -> None:
    # FunctionDef, arguments, arg, Return, Name; the longest path is FunctionDef-arguments-arg.
    assert measure("def f(x):\n    return x\n") == Complexity(
        ast_nodes=5, ast_depth=3, cyclomatic=1, lines=2
    )


def test_decisions_count_and_comments_do_not() -> None:
    found = measure(BRANCHES)
    assert found is not None
    # if, and, the comprehension's loop and its condition, plus one.
    assert found.cyclomatic == 5
    assert found.lines == 4


def test_nothing_measures_as_nothing() -> None:
    assert measure("") == Complexity(0, 0, 1, 0)


@pytest.mark.parametrize(
    "program",
    [
        "def f(:",
        "x = '\0'",
        "x = " + "-" * 20_000 + "1",
        "x = " + "-" * 6_000 + "1",
        "x = " + "(" * 5_000 + ")" * 5_000,
        "x = 1" + " + 1" * 4_000,
        "\ud800",
    ],
    ids=["syntax", "null", "long", "unary", "brackets", "chain", "surrogate"],
)
def test_what_cannot_be_measured_is_none(program: str) -> None:
    assert measure(program) is None


def test_odd_programs_warn_nobody() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert measure("def f(x):\n    return x is 1 or '\\d'") is not None


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="def f(x):\n    return [i for in x if]'\"\\#1+-*", max_size=80))
def test_no_text_makes_it_fail(program: str) -> None:
    measure(program)


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
def test_halsteads_volume_as_radon_counts(program: str, volume: float) -> None:
    tree = read_program(program).tree
    assert tree is not None
    assert halstead_volume(tree) == pytest.approx(volume)


def test_what_a_run_records_of_a_program() -> None:
    recorded = measures("def f(n):\n    return n + 1")
    assert list(recorded) == [measure.name for measure in MEASURES]
    # One operator, two operands, all different: 3 log2 3. Slices and calls are none to radon.
    assert recorded["halstead_volume"] == pytest.approx(3 * math.log2(3))
    assert measures("def f(:") == {}
