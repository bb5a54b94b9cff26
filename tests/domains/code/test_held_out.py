import pytest

from azr_population.domains.code.held_out import HeldOutPrograms

PROGRAM = "def f(a):\n    return a[2:] + [1, 3]"
EXAM = HeldOutPrograms([PROGRAM, "def f(s):\n    return s.upper()"])


def test_copies_are_told_however_they_are_laid_out():
    assert EXAM.is_copy(PROGRAM)
    assert EXAM.is_copy("def f( a ):  # mine\n\n  return (a[2:]+[1,3])\n")
    assert not EXAM.is_copy("def f(a):\n    return a[2:] + [1, 4]")


def test_near_copies_differ_in_constants_only():
    assert EXAM.is_near_copy("def f(a):\n    return a[7:] + [0, 9]")
    assert EXAM.is_near_copy("def f(a):\n    return a['x':] + [None, 2.5]")
    assert not EXAM.is_near_copy("def f(a):\n    return a[2:] + [1]")
    assert not EXAM.is_near_copy("def f(b):\n    return b[2:] + [1, 3]")


def test_what_does_not_parse_is_no_copy():
    exam = HeldOutPrograms(["def f(a:", PROGRAM])
    assert not exam.is_copy("def f(a:") and not exam.is_near_copy("def f(a:")


ODD = {  # `ast.unparse` cannot print them, or nothing can
    "text in an f-string": "def f(x):\n    return f'{x} apples'",
    "a format specification": "def f(x):\n    return f'{x:>10.2f}|{x!r}'",
    "a backslash in an f-string's braces": "def f(x):\n    return f'{chr(10) + x!r}\\n'",
    "bytes in an f-string's braces": "def f(x):\n    return f'{b\"a\\x00\" + x}'",
    "an unprintable character in braces": "def f(x):\n    return f'{\"\\x85\" + x}'",
    "nested f-strings": "def f(x):\n    return f'{f\"{x} a\"} b'",
    "a long hexadecimal integer": f"def f(x):\n    return x + 0x{'f' * 5000}",
    "deep nesting": f"def f(x):\n    return {'-' * 80 + 'x'}",
    "a lone surrogate": "def f(x):\n    return '\ud800'",
    "no program": "def f(x:",
}


@pytest.mark.parametrize("program", ODD.values(), ids=ODD)
def test_any_program_can_be_asked_about(program):
    held_out = HeldOutPrograms(["def f(x):\n    return x[0]"])
    assert not held_out.is_copy(program)
    assert not held_out.is_near_copy(program)


def test_an_f_string_is_recognised_in_another_layout_and_with_other_text():
    held_out = HeldOutPrograms(["def f(x):\n    return f'{x} apples'"])
    assert held_out.is_copy('def f(x):  # fruit\n    return f"{x} apples"')
    assert held_out.is_near_copy("def f(x):\n    return f'{x} pears'")
    assert not held_out.is_copy("def f(x):\n    return f'{x} pears'")
    assert not held_out.is_near_copy("def f(x):\n    return f'{x + 1} pears'")
