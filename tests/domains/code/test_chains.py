from itertools import pairwise
from random import Random

import pytest

from azr_population.domains.code import chains
from azr_population.domains.code.chains import OPERATIONS, Statement


def value(program: str, input: str) -> str:
    namespace: dict[str, object] = {}
    exec(program, namespace)
    return repr(eval(f"f({input})", namespace))


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("x", [[3, 1, 4], [0, 0, 9, 2], [5, 5, 5, 8, 1]])
def test_an_operation_is_its_python_and_can_be_undone(name, x):
    operation = OPERATIONS[name]
    y = operation.apply(x)
    assert value(chains.source([Statement("k", name)]), str(x)) == repr(y)
    assert operation.undo(y) == x
    assert len(y) == len(x) and all(0 <= digit <= 9 for digit in y)


def test_programs_are_read_back_traces_end_in_the_value_and_lead_back_to_the_input():
    rng = Random(1)
    for depth in range(1, chains.MAX_STATEMENTS + 1):
        chain = chains.draw_chain(rng, depth)
        program = chains.source(chain)
        assert chains.read(program) == chain
        assert len(program) <= 600
        for x, y in chains.draw_pairs(rng, chain, 3) or []:
            assert value(program, x) == y
            lines = chains.trace(program, x).split("\n")
            assert len(lines) == depth + 1 and lines[-1] == y
            back = chains.trace_back(program, y).split("\n")
            assert len(back) == depth and back[-1] == x


def test_the_trace_of_a_program():
    program = "def f(x):\n    k = x[::-1]\n    m = [9 - d for d in k]\n    return m"
    assert chains.trace(program, "[1, 2, 3]") == "k=[3, 2, 1]\nm=[6, 7, 8]\n[6, 7, 8]"
    assert chains.trace_back(program, "[6, 7, 8]") == "k=[3, 2, 1]\n[1, 2, 3]"
    assert (
        chains.trace(program, "[1, 2]") is chains.trace_back("def f(x): ...", "[1, 2, 3]") is None
    )


def test_no_statement_of_a_drawn_chain_undoes_the_one_before():
    rng = Random(2)
    for _ in range(50):
        chain = chains.draw_chain(rng, chains.MAX_STATEMENTS)
        for pair in pairwise(chain):
            assert any(chains.run(pair, x)[-1] != x for x in ([1, 2, 3], [1, 2, 3, 4]))


@pytest.mark.parametrize(
    "program",
    [
        "def f(x):\n    return x",
        "def f(y):\n    m = y[::-1]\n    return m",
        "def f(x):\n    m = x[::-1]\n    return x",
        "def f(x):\n    m = x[::-1]\n    m = m[::-1]\n    return m",
        "def f(x):\n    m = x[::-1]\n    k = x[::-1]\n    return k",
        "def f(x):\n    m = x[::-1]\n    k = m[1:] + m[:1]\n    return k",
        "def f(x):\n    m = sorted(x)\n    return m",
        "def f(x):\n    d = x[::-1]\n    return d",
        "def f(x):\n    m = x[::-1]\n    return m\n",
    ],
)
def test_other_programs_are_not_chains(program):
    assert chains.read(program) is None


@pytest.mark.parametrize("text", ["[1, 2]", "[1, 2, 3, 4, 5, 6]", "[1, 2, 10]", "[1,2,3]", "x"])
def test_other_inputs_are_not_of_the_world(text):
    assert chains.read_digits(text) is None
