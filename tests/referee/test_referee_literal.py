"""The literal reader agrees with Python's own on literals, and is bounded on everything."""

import ast
import contextlib
import gc
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azr_population.referee.sandbox.literal import (
    MAX_CHARS,
    MAX_DEPTH,
    NotLiteral,
    TooLarge,
    parse,
    parse_arguments,
    same,
    write,
    write_arguments,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.complex_numbers(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary()
)
hashables = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple))
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.sets(hashables, max_size=4)
        | st.dictionaries(hashables, inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=100)
@given(values)
def test_what_is_written_reads_back_the_same(value):
    text = write(value)
    assert same(parse(text), value)
    assert same(parse(write(parse(text))), value)
    assert same(ast.literal_eval(text), value)


@settings(deadline=None, max_examples=100)
@given(values)
def test_python_s_own_repr_reads_as_python_reads_it(value):
    assert same(parse(repr(value)), ast.literal_eval(repr(value)))


pieces = st.sampled_from(
    [*"[](){},:'\" \n\t-+.0179ej_\\#é", "True", "None", "12", "3.5", "'a'", '"b"', ", ", ": ",
     "set()", "''", "b'a'", "r'\\n'", "1j", "+2j", "1e5", "0x1f", "(1,)"]
)  # fmt: skip


def reads_as_python_or_refuses(text):
    try:
        value = parse(text)
    except NotLiteral:
        return True
    return repr(value) == repr(ast.literal_eval(text.strip()))


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet="0123456789abexj_.+-'\"\\()[]{},: rbuNT\n", max_size=12))
def test_any_text_reads_as_in_python_or_is_refused(text):
    assert reads_as_python_or_refuses(text), text


@settings(deadline=None, max_examples=1500)
@given(st.lists(pieces, max_size=12).map("".join))
def test_any_pieces_read_as_in_python_or_are_refused(text):
    assert reads_as_python_or_refuses(text), text


@settings(deadline=None, max_examples=400)
@given(values, st.integers(0, 60), pieces)
def test_one_piece_more_or_less_in_a_literal(value, place, piece):
    text = repr(value)
    assert reads_as_python_or_refuses(text[:place] + piece + text[place:])
    assert reads_as_python_or_refuses(text[:place] + text[place + 1 :])


@pytest.mark.parametrize("inside", ["", "1"])
def test_how_deep_it_goes(inside):
    text = "[" * MAX_DEPTH + inside + "]" * MAX_DEPTH
    assert repr(parse(text)) == text
    with pytest.raises(TooLarge):
        parse(f"[{text}]")


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999", "[1e999]", "1e999j"])
def test_what_is_not_finite_is_refused_by_name(text):
    with pytest.raises(NotLiteral):
        parse(text)


@settings(deadline=None, max_examples=60)
@given(st.lists(values, max_size=3))
def test_arguments_read_one_by_one(arguments):
    positional, named = parse_arguments(", ".join(write(value) for value in arguments))
    assert len(positional) == len(arguments) and not named
    assert all(map(same, positional, arguments))


def test_arguments_by_name():
    assert parse_arguments("1, key=[2], other = 'x'") == ((1,), {"key": [2], "other": "x"})
    assert parse_arguments("") == ((), {})
    assert parse_arguments("1,\n 2,\n") == ((1, 2), {})
    for broken in ("a=1, 2", "a=1, a=2", "a==1", "*[1]", "1 2", ",", "1,,2", "a.b=1"):
        with pytest.raises(NotLiteral):
            parse_arguments(broken)


@pytest.mark.parametrize(
    "name",
    ["é", "名前", "ª", "ﬁ", "match", "type", "_", "a1", "class", "None", "True", "if", "__debug__",
     "1a", "²", "a²", "a-b", "·a", "a·", "ｉｆ"],  # noqa: RUF001
)  # fmt: skip
def test_names_of_parameters_are_python_s(name):
    try:
        expected = ast.parse(f"f({name}=1)", mode="eval").body.keywords[0].arg
        compile(f"f({name}=1)", "", "eval")
    except SyntaxError:
        with pytest.raises(NotLiteral):
            parse_arguments(f"{name}=1")
    else:
        assert parse_arguments(f"{name}=1") == ((), {expected: 1})


def test_a_name_counts_in_its_normal_form():
    with pytest.raises(NotLiteral):
        parse_arguments("ﬁ=1, fi=2")


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, True, False),
        (0, False, False),
        (2, 2.0, True),
        (2, 2 + 0j, True),
        (0.0, -0.0, True),
        (2**70, 2.0**70, True),
        (2**70 + 1, 2.0**70, False),
        (math.nan, math.nan, False),
        ([1], (1,), False),
        ([1, [2.0]], [1.0, [2]], True),
        ([1], [True], False),
        ({1}, {True}, False),
        ({1, 2}, {2.0, 1}, True),
        ({(True,)}, {(1,)}, False),
        ({1: "a"}, {True: "a"}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        (set(), {}, False),
        ("a", b"a", False),
        (None, False, False),
        ((), [], False),
    ],
)
def test_the_rules_of_equality(left, right, equal):
    assert same(left, right) is equal
    assert same(right, left) is equal


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, [-math.inf], complex(0, math.nan), ..., object(), int, frozenset()],
)
def test_other_values_are_not_written(value):
    with pytest.raises(NotLiteral):
        write(value)


def test_bounds_of_writing():
    assert write("a" * 8, max_chars=10) == "'aaaaaaaa'"
    for value in ("a" * 9, [0] * 4, {1: [2, 3, 4]}, 10**10):
        with pytest.raises(TooLarge):
            write(value, max_chars=10)
    deep = []
    for _ in range(65):
        deep = [deep]
    with pytest.raises(TooLarge):
        write(deep)
    with pytest.raises(TooLarge):
        write(10**4300)
    assert len(write(10**4299)) == 4300


@pytest.mark.parametrize(
    "text",
    [
        "'" * MAX_CHARS,
        "'''" + "'" * (MAX_CHARS - 4),
        '"""' + '\\"' * (MAX_CHARS // 2 - 2),
        "'a' " * (MAX_CHARS // 4),
        "[" * MAX_CHARS,
        "(" * 60 + "1," * (MAX_CHARS // 2 - 60),
        "1_" * (MAX_CHARS // 2),
        "1" * MAX_CHARS,
        "0x" + "f" * (MAX_CHARS - 2),
        "1e" + "9" * (MAX_CHARS - 2),
        "-" * MAX_CHARS,
        "{" + ",".join(str(i * (2**61 - 1)) for i in range(2500)) + "}",
        "1+1j" * (MAX_CHARS // 4),
        "set()" * (MAX_CHARS // 5),
        "\\N{" * (MAX_CHARS // 3),
        "'" + "\\N{BULLET}" * (MAX_CHARS // 11) + "'",
        " " * MAX_CHARS,
        "a=" * (MAX_CHARS // 2),
        *(unit * (MAX_CHARS // len(unit)) for unit in ("1,", "'a',", "{1:", "1 ", "True", "1\n,")),
    ],
)
def test_the_worst_texts_take_no_time(text):
    for read in (parse, parse_arguments):
        gc.disable()  # a process that has played many tests has much to collect
        began = time.process_time()
        with contextlib.suppress(NotLiteral):
            read(text[:MAX_CHARS])
        took = time.process_time() - began
        gc.enable()
        assert took < 0.4  # twice the slowest, 1,1,1,...


@pytest.mark.parametrize("text", ["1" * 400 + "+1j", "0x" + "f" * 300 + "-1j"])
def test_an_int_beyond_a_complex_number_is_not_a_literal(text):
    for read, wrapped in ((parse, text), (parse, f"[{text}]"), (parse_arguments, f"1, a={text}")):
        with pytest.raises(NotLiteral):
            read(wrapped)


def test_what_is_written_is_as_short_as_what_is_read():
    for value in ({i: i for i in range(6000)}, [set()] * 12_000):
        with pytest.raises(TooLarge):
            write(value)
    with pytest.raises(TooLarge):
        write_arguments(["a" * 40_000, "b" * 40_000], {})
    assert len(parse(write([set()] * 9_000))) == 9_000


def test_text_over_the_bound_is_refused():
    with pytest.raises(TooLarge):
        parse("1" + " " * MAX_CHARS)


@pytest.mark.parametrize("digits", ["1" * 400 + ".0", "9" * 400 + ".0", "-" + "1" * 400 + "."])
def test_a_float_beyond_range_is_not_a_literal(digits):
    for text in (digits, f"[{digits}]", f"{{'a': {digits}}}"):
        with pytest.raises(NotLiteral):
            parse(text)
        with pytest.raises(NotLiteral):
            parse_arguments(f"1, {text}")
    assert parse("1" * 400) == int("1" * 400)
