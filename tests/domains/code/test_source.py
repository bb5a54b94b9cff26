"""What models write is read in the trainer's process: no text may raise there."""

import ast

from azr_population.domains.code.source import arguments, fingerprint, literal


def test_fingerprints_are_of_the_tree():
    first = fingerprint("def f(x):\n    return f'{x} apples' + 'a'")
    assert first == fingerprint("def f( x ): # apples\n  return (f'{x} apples'\n +'a')")
    assert first != fingerprint("def f(x):\n    return f'{x} pears' + 'a'")
    assert fingerprint("a(1)") != fingerprint("a(1.0)") != fingerprint("a(True)")
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
