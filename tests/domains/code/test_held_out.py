from azr_population.domains.code.held_out import HeldOutPrograms, canonical, without_constants

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
    assert canonical("def f(") is None and without_constants("(" * 10_000) is None
