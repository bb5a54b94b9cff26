"""No text that a model writes may raise in the trainer: programs made up and mutated at random.

Longer: HYPOTHESIS_MAX_EXAMPLES=100000 pytest tests/domains/code/test_fuzz.py
"""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.complexity import DESCRIPTORS
from azr_population.domains.code.domain import Code
from azr_population.domains.code.rules import reads_a_parameter, reason_to_refuse, task_or_reason
from azr_population.domains.code.source import arguments, is_finite, literal, read_program
from azr_population.domains.code.task_types import ParsedProposal, TaskType
from azr_population.printable import printable, shareable

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


def read_by_all(program, given_, output, kind):
    """Reads the texts by all that reads them in the trainer."""
    proposal = ParsedProposal(str(kind), program, (given_,) * 5)
    if not reason_to_refuse(proposal, RULES):
        task_or_reason(proposal, (output,) * 5, RULES)
    reads_a_parameter(program)
    is_copy = Code().copies_of([program])
    parses = read_program(program) is not None
    assert is_copy(program) is parses
    record = {"program": program, "inputs": [given_], "outputs": [output], "type": str(kind)}
    domain = Code()
    measured = domain.measure(program)
    assert {*measured} <= {measure.name for measure in domain.measures}
    assert parses or not measured
    record |= measured
    place = domain.space.point(record)
    assert place is None or len([float(value) for value in place]) == len(DESCRIPTORS)
    domain.parts(record)
    assert all(text is None or isinstance(text, str) for text in map(literal, arguments(given_)))
    assert json.loads(json.dumps(record)) == record
    assert isinstance(is_finite(given_), bool)
    assert printable(shareable(program)).replace("\n", "").replace("\t", "").isprintable()


@settings(max_examples=EXAMPLES, deadline=None)
@given(program=programs(), given_=EXPRESSIONS, output=EXPRESSIONS, kind=st.sampled_from(TaskType))
def test_no_program_raises_where_the_trainer_reads_it(program, given_, output, kind):
    read_by_all(program, given_, output, kind)


HEADER = "def f(x):\n    return "
ODD = {
    "f-string": HEADER + "f'{x} apples'",
    "nested f-string": HEADER + "f'{x:>{len(str(x))}} of {x!r} {x=}'",
    "f-string, quotes": HEADER + """f'{x["a"]} and {chr(10)}'""",
    "f-string, escapes": HEADER + "f'\\n{x}\\t\\\\'",
    "f-string, bytes": HEADER + "f\"{b'ab'!r} {x}\"",
    "f-string, unprintable": HEADER + "f'{\"\x7f\x01\"} {x}'",
    "f-string of constants": HEADER + "f'{1}{2.5}{None}'",
    "bytes": HEADER + "x + b'\\xff\\x00'",
    "decimal of 5,000 digits": HEADER + "9" * 5000,
    "hexadecimal of 5,000 digits": HEADER + "0x" + "f" * 5000,
    "f-string, hexadecimal": HEADER + "f'{0x" + "f" * 5000 + "} {x}'",
    "infinity": HEADER + "1e999 - 1e999j",
    "surrogate": HEADER + "'\ud800'",
    "escaped surrogate": HEADER + "'\\ud800'",
    "null byte": HEADER + "'\0'",
    "encoding": "# -*- coding: utf-7 -*-\n" + HEADER + "x",
    "unknown encoding": "# coding: no-such\n" + HEADER + "x",
    "byte order mark": "\ufeff" + HEADER + "x",
    "brackets": HEADER + "(" * 150 + "x" + ")" * 150,
    "brackets, many": HEADER + "(" * 5000 + "x" + ")" * 5000,
    "minuses": HEADER + "-" * 6000 + "x",
    "attributes": HEADER + "x" + ".a" * 3000,
    "sum": HEADER + "x" + " + x" * 4000,
    "calls": HEADER + "x" + "()" * 3000,
    "lambdas": HEADER + "lambda: " * 1000 + "x",
    "long": HEADER + "x" + " " * 100_000,
    "form feeds": "\f\f" + HEADER + "x\f",
    "other digits": HEADER + "x + \u0663",
    "ligature": "def f(\ufb01):\n    return \ufb01",
    "match": "def f(x):\n    match x:\n        case {'a': [*_, b], **c} | 1: return b",
    "async": "async def f(x):\n    async with x as y: return [i async for i in y]",
    "decorated": "@(lambda g: g)\ndef f(x, /, *, y=...): global z; z = x; return (yield x)",
    "nothing": "",
    "walrus": HEADER + "(y := x, *x, {**x}, {*x}, x[1:2, ...], not x, await_)",
}


@pytest.mark.parametrize("program", ODD.values(), ids=ODD)
def test_nor_does_an_odd_one(program):
    read_by_all(program, program, program, TaskType.CODE_F)
