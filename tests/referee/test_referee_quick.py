"""The quick reader reads as the thorough one does, or leaves the text alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azr_population.referee.sandbox import quick
from azr_population.referee.sandbox.literal import write
from azr_population.referee.sandbox.reader import NotLiteral, Reader

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=4)
        | st.sets(st.integers() | st.text(max_size=3), max_size=4)
    ),
    max_leaves=10,
)
pieces = st.sampled_from(
    [*"[](){},:'\" \n\t-+.0179ej_\\#é", "True", "None", "False", "12", "3.5", "'a'", '"b"', ", ",
     ": "]
)  # fmt: skip


def agrees(text):
    """Whether what the quick reader reads, if it does, is what the thorough one reads."""
    found = quick.read(text, 63)
    if found is None:
        return True
    try:
        return repr(found) == repr(Reader(text, 64).items("", 0))
    except NotLiteral:
        return False


@settings(deadline=None, max_examples=1500)
@given(st.lists(pieces, max_size=12).map("".join))
def test_any_text_is_read_as_the_thorough_reader_reads_it(text):
    assert agrees(text), text


@settings(deadline=None, max_examples=300)
@given(values)
def test_values_are_read_as_the_thorough_reader_reads_them(value):
    assert agrees(write(value))
    assert agrees(repr(value))


@settings(deadline=None, max_examples=400)
@given(values, st.integers(0, 60), pieces)
def test_one_piece_more_or_less_in_a_literal(value, place, piece):
    text = repr(value)
    assert agrees(text[:place] + piece + text[place:])
    assert agrees(text[:place] + text[place + 1 :])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ([], False)),
        ("1,", ([1], True)),
        ("-3, 'a b', [True, None]", ([-3, "a b", [True, None]], True)),
        ("{1: {2}, 'k': ()}, ((1,), (2))", ([{1: {2}, "k": ()}, ((1,), 2)], True)),
        ("[1.5, -0.0, {}]", ([[1.5, -0.0, {}]], False)),
    ],
)
def test_what_it_reads(text, expected):
    assert repr(quick.read(text, 10)) == repr(expected)


@pytest.mark.parametrize(
    "text",
    [
        "x", "f(1)", "1 2", "1-2", "[1][0]", "(1)(2)", "'a' 'b'", "'''a'''", "b'a'", "r'a'",
        "'a\\n'", "007", "1_0", "1.", ".5", "1e5", "2j", "1.5.2", "- 1", "--1", "+1", "Truer",
        "1True", "[,]", "[1,,]", ",", "{1:}", "{1: 2, 3}", "{1, 2: 3}", "{:}", "{1: 2: 3}", "{[]}",
        "{[]: 1}", "[1", "1]", "(1]", "[1: 2]", "1: 2", "x=1", "1 # a", "\n1\n", "[1,\n2]",
        "9" * 19, "é", "'a",
    ],
)  # fmt: skip
def test_what_it_leaves_alone(text):
    assert quick.read(text, 10) is None


def test_it_goes_no_deeper_than_it_is_told():
    assert quick.read("[" * 10 + "]" * 10, 10) is not None
    assert quick.read("[" * 11 + "]" * 11, 10) is None


def test_long_runs_of_anything_take_linear_time():
    for unit in (" ", "[", "1,", "'a',", "(", "{", "{1:", "-", "9", "'", '"', "1 ", "True"):
        quick.read(unit * (65536 // len(unit)), 63)
