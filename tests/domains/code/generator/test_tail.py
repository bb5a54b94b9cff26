"""The long tail: what is seldom, how seldom, and that its programs run."""

from collections import Counter
from random import Random

import pytest
from constructs import shape
from corpus import draw_groups

from azr_population.domains.code.generator.grammar import Grammar
from azr_population.domains.code.generator.programs import run_function
from azr_population.domains.code.generator.tail import (
    CONSTRUCTS,
    SHARES,
    TailGrammar,
    draw_composition,
    draw_construct,
)


def test_every_construct_gives_the_type_it_says():
    values = {"list": "[3, 1, 2]", "str": "'bca'"}
    for construct in CONSTRUCTS:
        source = f"def f(x):\n    return {construct.text.format(x='x', c=repr('d'))}"
        (value,) = run_function(source, [values[construct.takes]])
        assert type(eval(value)).__name__ == construct.gives, construct


def test_the_core_has_none_of_them():
    grammar = Grammar(Random(3))
    programs = [grammar.program(level).source for level in range(4) for _ in range(500)]
    for construct in CONSTRUCTS:
        held = sum(shape(construct).search(program) is not None for program in programs)
        assert held < 0.01 * len(programs), (construct, held)


@pytest.mark.parametrize("phase", ["propose", "solve"])
def test_frequencies_fall_with_the_rank(phase):
    rng = Random(1)
    counts = Counter(draw_construct(phase, rng) for _ in range(30_000))
    ranked = [counts[construct] for construct in CONSTRUCTS]
    assert sum(ranked[:4]) > sum(ranked[4:8]) > sum(ranked[8:]) > 0


def test_a_program_has_the_construct_it_was_asked_for():
    grammar = TailGrammar(Random(2))
    for construct in CONSTRUCTS:
        for _ in range(20):
            assert shape(construct).search(grammar.tail_program([construct]).source)
        assert len(grammar.tail_program([construct], simple=True).source.splitlines()) == 2


def test_compositions_feed_one_construct_to_the_other():
    grammar = TailGrammar(Random(4))
    for _ in range(50):
        first, second = draw_composition(grammar.rng)
        source = grammar.tail_program((first, second)).source
        assert first.gives == second.takes and first != second
        assert shape(first).search(source) and shape(second).search(source)


def test_documents_have_the_tail_in_its_share_only_where_it_is_wanted():
    def share(phase, tail):
        groups = draw_groups(Random(7), 1500, strict=True, tail=tail)
        programs = [tasks[0].program for kind, tasks in groups if kind == phase]
        return sum(any(shape(c).search(p) for c in CONSTRUCTS) for p in programs) / len(programs)

    for phase in ("propose", "solve"):
        assert share(phase, False) < 0.02
        assert SHARES[phase] < share(phase, True) < SHARES[phase] + 0.25
