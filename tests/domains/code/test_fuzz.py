"""No text that a model writes may raise in the trainer: programs made up and mutated at random.

Longer: HYPOTHESIS_MAX_EXAMPLES=100000 pytest tests/domains/code/test_fuzz.py
"""

import json
import os

from hypothesis import given, settings
from hypothesis import strategies as st

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.domain import Code
from azr_population.domains.code.source import is_finite, read_program
from azr_population.domains.code.task_types import ParsedProposal, TaskType
from azr_population.domains.code_e.named_error import naming
from azr_population.domains.puzzles.domain import Puzzles
from azr_population.domains.puzzles.grammar import candidates
from azr_population.method.record import shorten
from azr_population.printable import printable, shareable
from azr_population.referee import Execution, Reason

RULES = TaskConfig(max_output_chars=10_000)
EXAMPLES = int(os.environ.get("HYPOTHESIS_MAX_EXAMPLES", "200"))
ATOMS = st.one_of(
    st.sampled_from(
        ["x", "f", "1", "1.5", "1e999", "2j", "None", "True", "...", "'a'", "b'\\xff'"]
    ),
    st.integers(0, 6000).map(lambda digits: "0x" + "f" * (digits + 1)),
    st.integers(0, 6000).map(lambda digits: "9" * (digits + 1)),
    st.text(max_size=8).map(repr),
    st.binary(max_size=8).map(repr),
    st.text(max_size=8),
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("f'{{{}}}'".format, inner),
        st.builds('f"{}{{{}!r:>{}}}"'.format, st.text(max_size=4), inner, st.integers(0, 9)),
        st.builds("f'''{{{}}} text {{{}=}}'''".format, inner, inner),
        st.builds(
            "({} {} {})".format,
            inner,
            st.sampled_from(["+", "**", "%", "if x else", "in", "is", "and", ":=", ",", "<<"]),
            inner,
        ),
        st.builds("[{} for x in {} if {}]".format, inner, inner, inner),
        st.builds("{{{}: {}, **{}}}".format, inner, inner, inner),
        st.builds("lambda x, *y, z={}: {}".format, inner, inner),
        st.builds("{}({}, key={})[{}:]".format, inner, inner, inner, inner),
        st.tuples(st.sampled_from("-~(["), st.integers(1, 3000), inner).map(
            lambda part: part[0] * part[1] + part[2]
        ),
    ),
    max_leaves=12,
)
LINES = st.sampled_from(
    [
        *("# -*- coding: utf-7 -*-", "\ufeff", "from __future__ import annotations", "import re"),
        *("'''doc'''", "@f", "class f: pass", "x: int = 1", "\f", "\r", "\0", "\udcff", "\\"),
        *(
            "def sat(x): return x == 1",
            "match x:\n    case [*_]: pass",
            "global f",
            "async def f(): 1",
        ),
    ]
)


@st.composite
def programs(draw):
    """A program of such lines with an `f` that returns such an expression, and then a few signs
    struck out, doubled or replaced."""
    before = "\n".join(draw(st.lists(LINES, max_size=3)))
    body = draw(EXPRESSIONS)
    text = f"{before}\ndef f(x):\n    return {body}\n"
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text = (
            text[:at] + draw(st.sampled_from(["", "'", "{", "\n", "\ud800", "#"])) + text[at + 1 :]
        )
    return text


@settings(max_examples=EXAMPLES, deadline=None)
@given(program=programs(), given_=EXPRESSIONS, output=EXPRESSIONS, kind=st.sampled_from(TaskType))
def test_no_program_raises_where_the_trainer_reads_it(program, given_, output, kind):
    proposal = ParsedProposal(str(kind), program, (given_,) * 5)
    if not Code().refuse(proposal, RULES):
        Code().accept(proposal, Execution(True, Reason.OK, (output,) * 5), RULES)
    held_out = Code().held_out([program])
    parses = read_program(program) is not None
    assert held_out.is_copy(program) is held_out.is_near_copy(program) is parses
    record = {"program": program, "inputs": [given_], "outputs": [output], "type": str(kind)}
    for domain in (Code(), Puzzles()):
        record |= domain.measure(program)
        assert domain.space is not None
        place = domain.space.point(record)
        assert place is None or all(isinstance(value, float) for value in map(float, place))
        domain.parts(record)
    assert all(isinstance(candidate, str) for candidate in candidates(program))
    assert json.loads(json.dumps(record)) == record
    assert isinstance(is_finite(given_), bool)
    naming(program, ["import re"])
    assert printable(shareable(program)).replace("\n", "").replace("\t", "").isprintable()
    shorten(program)
