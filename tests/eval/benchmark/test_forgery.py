"""Solutions that know nothing and forge what is told of their outputs; outputs that are many."""

import itertools

import needs
import pytest
from test_functions import problem

from azr_population.eval.benchmark import functions
from azr_population.eval.benchmark.functions import FunctionProblem
from azr_population.eval.benchmark.sandbox import ProgramRun, SolutionOutput
from azr_population.eval.benchmark.sandboxed import text_digest

FLOATS = {
    "a float": problem("def f(x):\n    return x / 3", [[1]], [[2], [5]]),
    "pairs": problem("def f(x):\n    return [(x, x / 7), (0, x / 3)]", [[1]], [[2]], atol=1e-6),
}
NAMES = ("float", "list")
BASES = ("list", "tuple", "dict", "set", "str", "bytes", "int", "float", "object")
TYPES = [
    f"class {name}({base}): pass\n\ndef f(x):\n    return {value}"
    for name, base in itertools.product(NAMES, BASES)
    for value in (f"{name}()", f"[{name}()]")
]
EMPTY = [f"def f(x):\n    return {value}" for value in ("[]", "()", "[[]]", "[[], []]", "[()] * 2")]
WRITERS = [
    "import sys\n\ndef f(x):\n    frame = sys._getframe()\n    while frame:\n"
    f"        frame.f_globals[{name!r}] = lambda *given, **named: {value}\n"
    "        frame = frame.f_back\n    return 0"
    for name, values in {
        "encode": ("['text', '[]']", "['long', '0' * 24]", "['huge', '']", "['opaque', '']", "[]"),
        "written": ("'[]'", "'1e999'", "''", "'~'"),
        "plain": ("[]", "()", "1e999", "float('nan')"),
        "record": ("''", "'eNqLjgUAARUAuQ=='", "[]", "None"),
        "shortened": ("['text', '[]']", "['hash', '']", "['hash', '0' * 24]"),
        "text_digest": ("'0' * 24", "''"),
        "described": ("''",),
    }.items()
    for value in values
]


@pytest.mark.parametrize("kind", FLOATS)
def test_nobody_passes_without_an_answer(kind):
    asked = FLOATS[kind]
    tries = [*TYPES, *EMPTY, *WRITERS]
    *verdicts, right = FunctionProblem.judge([(asked, t) for t in [*tries, asked.canonical]])
    assert right.passed
    assert not [source for source, v in zip(tries, verdicts, strict=True) if v.passed]


def told(value):
    return SolutionOutput("text", repr(value))


@pytest.mark.parametrize(
    ("right", "output", "passes"),
    [
        (0.5, 0.5 + 1e-7, True),
        (0.5, [], False),
        (0.5, [0.5 + 1e-7], False),
        (0.5, True, False),
        (0.5, 10**400, False),
        (2.0, 2, True),  # Python's ==
        ([0.5], [0.5 + 1e-7], True),
        ([0.5], 0.5 + 1e-7, False),
        ([0.5, 0.5], [[0.5, 0.5 + 1e-7]] * 2, False),
        ([0.5, 0.5], (0.5, 0.5 + 1e-7), False),
        ([0.5, 0.5], [0.5 + 1e-7], False),
        ([0.5, 0.5], ["0.5", 0.5], False),
        ([0.5, 0.5], {0: 0.5, 1: 0.5}, False),
        ([0.5, 0.5], None, False),
    ],
)
def test_types_are_those_of_values_and_shapes_agree(right, output, passes):
    asked = problem("", [[1]])
    asked.expected = [functions._expected(asked, [[1]], ProgramRun([told(right)]))]
    assert functions._is_right(asked, 0, 0, told(output)) == passes


def test_a_value_is_the_same_however_it_is_told():
    text = repr(list(range(30)))
    in_full, hashed = SolutionOutput("text", text), SolutionOutput("hash", text_digest(text))
    assert in_full.same_text(hashed)
    assert not hashed.same_text(SolutionOutput("hash", text_digest(text + " ")))


MANY = problem(
    "import math\n\ndef f(seed):\n    return [math.sin(seed + i) * 1e3 for i in range(200)]",
    [[n] for n in range(3)],
    [[1000 * n] for n in range(80)],
)
LONG = problem(
    "def f(n):\n    return [n / (i + 1) for i in range(2000)]", [[1]], [[n] for n in range(2, 6)]
)


@pytest.mark.parametrize("asked", [MANY, LONG], ids=["many", "long"])
def test_outputs_that_are_many_and_long_keep_the_tolerance(asked):
    off = asked.canonical.replace("return [", "return [1e-8 + ")
    late = asked.canonical.replace("):\n", "):\n    last = {}\n", 1)
    late = late.replace("return [", f"return [({asked.plus_inputs[-1][0]} == ARG) * 1e-2 + ")
    late = late.replace("ARG", "seed" if asked is MANY else "n")
    verdicts = FunctionProblem.judge([(asked, t) for t in (asked.canonical, off, late)])
    assert [v.passed for v in verdicts] == [True, True, False]
    assert verdicts[2].detail == f"plus input {len(asked.plus_inputs) - 1}"


def test_random_numbers_that_nothing_compresses_still_cross():
    source = "import random\n\ndef f(n):\n    return random.Random(n).randbytes(300).hex()"
    asked = problem(source, [[0]], [[n] for n in range(400)])
    wrong = "def f(n):\n    return ''"
    verdicts = FunctionProblem.judge([(asked, asked.canonical), (asked, wrong)])
    assert [v.passed for v in verdicts] == [True, False]


@pytest.mark.parametrize(
    ("name", "arguments", "right", "output", "passes"),
    [
        ("sum_div", [8], 7, 0, True),
        ("sum_div", [8], 7, 1, False),
        ("are_equivalent", [1, 2], True, False, True),
        ("similar_elements", [(4, 5), (5, 4)], (4, 5), [5, 4], True),
        ("similar_elements", [(4, 5), (5, 4)], (4, 5), [4], False),
        ("check_str", ["a"], 1, None, False),
    ],
)
def test_evalplus_s_special_rules(name, arguments, right, output, passes):
    needs.module("evalplus", "-e '.[eval]'")
    asked = FunctionProblem("own/f", "", name, "", [arguments], dataset="mbpp")
    asked.expected = [[(told(right), 0.0)]]
    assert functions._is_right(asked, 0, 0, told(output)) == passes


def test_a_tolerance_that_a_float_began_holds_for_the_inputs_behind_it():
    asked = problem("", [[1], [2]])
    for first, second, place, passes in ((0.5, [0.5, 1], 1, True), ([0.5, 1], 0.5, 0, False)):
        run = ProgramRun([told(first), told(second)])
        asked.expected = [functions._expected(asked, [[1], [2]], run)]
        assert functions._is_right(asked, 0, place, told([0.5 + 1e-7, 1])) == passes
