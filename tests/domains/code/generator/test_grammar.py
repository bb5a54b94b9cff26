from collections import Counter
from random import Random

import pytest

from azr_population.domains.code.complexity import measures
from azr_population.domains.code.generator.grammar import Grammar
from azr_population.domains.code.generator.programs import run_function


@pytest.mark.parametrize("level", [0, 1, 2, 3, 5])
def test_programs_compile_and_mostly_run(level):
    grammar = Grammar(Random(level))
    ran = 0
    for _ in range(100):
        written = grammar.program(level)
        compile(written.source, "<program>", "exec")
        ran += run_function(written.source, [grammar.arguments(written.parameters)])[0] is not None
    assert ran >= 85


def test_programs_differ_and_grow_with_the_level():
    grammar = Grammar(Random(1))
    sizes = []
    for level in range(4):
        sources = [grammar.program(level).source for _ in range(150)]
        assert Counter(sources).most_common(1)[0][1] <= 20
        sizes.append(sum(measures(source)["ast_nodes"] for source in sources) / 150)
    assert sizes == sorted(sizes)
    assert sizes[3] > 2 * sizes[0]


def test_values_that_fail_or_are_too_long_are_none():
    source = "def f(a):\n    return a[5] if len(a) > 2 else 'x' * 99"
    assert run_function(source, ["[1, 2, 3]", "[1]"]) == [None, None]
    assert run_function("def f(a):\n    a.append(1)\n    return a", ["[2]"]) == ["[2, 1]"]
