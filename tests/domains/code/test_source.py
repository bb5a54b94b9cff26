"""What models write is read in the trainer's process: no text may raise there."""

import ast

import pytest

from azr_population.domains.code import complexity
from azr_population.domains.code.domain import Code, reads_a_parameter
from azr_population.domains.code.source import arguments, fingerprint, literal, read_program
from azr_population.domains.puzzles import grammar

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
    "minuses": HEADER + "-" * 3000 + "x",
    "attributes": HEADER + "x" + ".a" * 3000,
    "sum": HEADER + "x" + " + x" * 3000,
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
def test_an_odd_program_is_read_by_all(program):
    held_out = Code().held_out([program, HEADER + "x"])
    parses = read_program(program) is not None
    assert held_out.is_copy(program) == held_out.is_near_copy(program) == parses
    assert {*complexity.measures(program)} <= {measure.name for measure in complexity.MEASURES}
    values = complexity.SPACE.point(
        {"program": program, "inputs": [program, "1"], "outputs": [program]}
    )
    assert values is None or len(values) == len(complexity.DESCRIPTORS)
    assert len(grammar.candidates(program)) >= len(grammar.ALWAYS)
    reads_a_parameter(program)
    assert all(text is None or isinstance(text, str) for text in map(literal, arguments(program)))


def test_fingerprints_are_of_the_tree():
    first = fingerprint("def f(x):\n    return f'{x} apples' + 'a'")
    assert first == fingerprint("def f( x ): # apples\n  return (f'{x} apples'\n +'a')")
    assert first != fingerprint("def f(x):\n    return f'{x} pears' + 'a'")
    assert fingerprint("a(1)") != fingerprint("a(1.0)") != fingerprint("a(True)")
    assert fingerprint("a(1)", False) == fingerprint("a('b')", False)
    assert fingerprint("[[a], b]") != fingerprint("[[a, b]]")
    assert fingerprint("(") is None


def test_literals_and_arguments():
    assert [literal(argument) for argument in arguments("[1,2], key='a', *b")] == [
        "[1, 2]",
        None,
        "'a'",
    ]
    assert arguments("1) + f(2") == [] and arguments("(") == []
    assert literal(ast.parse("0x" + "f" * 5000, mode="eval").body) is None
