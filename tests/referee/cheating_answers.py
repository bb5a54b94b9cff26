"""The corpus of cheating answers: data for test_referee_cheating_answers.py. None may score."""

# ruff: noqa: E501, RUF001

from __future__ import annotations

NO_LITERALS = {
    "the call itself": "f(3)",
    "a builtin": "int('4')",
    "a sum": "3 + 1",
    "a double sign": "--4",
    "an inversion": "~-5",
    "a subscript": "[4][0]",
    "an attribute": "(4).real",
    "a lambda": "lambda: 4",
    "a lambda called": "(lambda: 4)()",
    "a comprehension": "[i for i in (4,)][0]",
    "a generator": "next(i for i in (4,))",
    "a dict comprehension": "{i: i for i in (4,)}[4]",
    "a condition": "4 if True else 5",
    "a disjunction": "0 or 4",
    "a negation": "not 0",
    "a comparison": "4 == 4",
    "a walrus": "(y := 4)",
    "an f-string": "f'{4}'",
    "a t-string of flags": "fr'4'",
    "an equal object": "type('X', (), {'__eq__': lambda s, o: True})()",
    "an object that multiplies": "type('X', (), {'__mul__': lambda s, o: 4})()",
    "an object that hashes": "{type('X', (), {'__hash__': lambda s: 4})(): 1}",
    "mock.ANY": "__import__('unittest.mock').mock.ANY",
    "an import": "__import__('os').system('true')",
    "exec": "exec('import os')",
    "globals": "globals()['f'](3)",
    "a name": "gold",
    "a dunder name": "__file__",
    "NotImplemented": "NotImplemented",
    "Ellipsis by name": "Ellipsis",
    "dots": "...",
    "nan": "nan",
    "inf": "inf",
    "float of nan": "float('nan')",
    "frozenset": "frozenset({4})",
    "a set call with a value": "set([4])",
    "starred": "*[4]",
    "double starred": "{**{4: 4}}",
    "a slice": "4:5",
    "two expressions": "4; 4",
    "two lines": "4\n4",
    "an assignment": "x = 4; 4",
    "a statement": "return 4",
    "yield": "yield 4",
    "await": "await 4",
    "a comment": "4 # four",
    "a comment first": "# 4\n5",
    "a continuation": "4\\\n",
    "backticks": "`4`",
    "a fence": "```4```",
    "prose": "The output is 4.",
    "arrows": ">>> 4",
    "nothing": "",
    "blanks": " \t ",
    "full-width digit": "４",
    "Arabic digit": "٤",
    "superscript": "⁴",
    "zero-width space": "4\u200b",
    "byte order mark": "\ufeff4",
    "no-break space": "\u00a04",
    "null": "4\0",
    "minus look-alike": "−4",
    "quote look-alikes": "‘4’",
    "leading zero": "04",
    "trailing underscore": "4_",
    "two underscores": "1__0",
    "half a string": "'4",
    "half a list": "[4",
    "the wrong bracket": "[4)",
    "an empty element": "[4,,4]",
    "a lonely comma": ",",
    "a set of lists": "{[4]}",
    "a broken escape": "'\\x4'",
    "an unknown character": "'\\N{NO SUCH CHARACTER}'",
    "text beside bytes": "'4' b'4'",
    "a list of names": "[True, none]",
    "true in lower case": "true",
    "null of JSON": "null",
}

TOO_LARGE = {
    "too many digits": "4" * 5000,
    "a megabyte": "4" + " " * 2**20,
    "a megabyte of list": "[" + "4," * 2**19 + "]",
    "nested lists": "[" * 5000 + "]" * 5000,
    "nested parentheses": "(" * 100 + "4" + ")" * 100,
    "nested dicts": "{4:" * 300 + "4" + "}" * 300,
    "signs": "-" * 100_000 + "4",
    "open quotes": "'" * 100_000,
}

WRONG_VALUES = {
    # gold output -> answers that are literals, and not the same
    "4": ("5", "'4'", "b'4'", "[4]", "(4,)", "4,", "{4}", "4j", "True", "None", "0x5", "1e999", "4.0000001"),
    "1": ("True",),
    "0": ("False", "''", "None", "[]"),
    "True": ("1", "1.0", "'True'", "[True]"),
    "[1, 2]": ("(1, 2)", "1, 2", "[2, 1]", "[1, 2, 3]", "[[1, 2]]", "{1, 2}", "[True, 2]", "'[1, 2]'"),
    "(1, 2)": ("[1, 2]", "(2, 1)", "(1,)", "((1, 2),)"),
    "{1, 2}": ("[1, 2]", "{1}", "{1: 2}", "{True, 2}"),
    "{'a': 1}": ("{'a': True}", "{'a': 2}", "{'b': 1}", "{}", "{'a'}", "[('a', 1)]"),
    "set()": ("{}", "[]", "()"),
    "'a'": ("'A'", "b'a'", "a", "'а'", "'a '", "['a']"),
    "''": ("None", "b''", "' '"),
    "(1, (2, [3]))": ("(1, (2, (3,)))", "(1, [2, [3]])"),
    "1.5": ("1.50001", "'1.5'", "1.5j"),
    "None": ("False", "0", "''", "'None'"),
}  # fmt: skip

RIGHT_VALUES = {
    "4": ("4", " 4 ", "4\n", "+4", "0x4", "0b100", "0o4", "4.0", "(4)", "((4))", "4e0", "4+0j"),
    "True": ("True", "(True)"),
    "-2.5": ("-2.5", "-25e-1", "- 2.5"),
    "0.0": ("0", "-0.0", "0j"),
    "[1, 2]": ("[1,2]", "[1, 2,]", "[\n1,\n2\n]", "[1.0, 2]"),
    "(1, 2)": ("(1, 2)", "1, 2", "1,2,", "(1,2,)"),
    "()": ("()", "( )"),
    "(1,)": ("1,", "(1,)"),
    "{1, 2}": ("{2, 1}", "{1, 2, 2}"),
    "set()": ("set()", "set( )"),
    "{'a': 1, 'b': [None]}": ("{'b': [None], 'a': 1}", "{'a': 0, 'a': 1, 'b': [None,]}"),
    "'a\\nb'": ('"a\\nb"', "'''a\nb'''", "'a' '\\nb'", "'\\x61\\u000ab'", "'a\\012b'"),
    "'é'": ("'é'", "'\\xe9'", "'\\N{LATIN SMALL LETTER E WITH ACUTE}'", "u'é'"),
    "b'a\\\\'": ("b'a\\\\'", "b'\\x61\\x5c'"),
    "1180591620717411303424": ("1180591620717411303424", "1_180_591_620_717_411_303_424"),
}

# A student's programs for the hidden pairs 1 -> 2, 2 -> 4, 3 -> 6: none of them computes anything.
FUNCTIONS = {
    "equal to everything": "class E:\n    __eq__ = lambda s, o: True\n    __hash__ = lambda s: 0\ndef f(x): return E()",
    "an int equal to everything": "class E(int):\n    __eq__ = lambda s, o: True\ndef f(x): return E()",
    "a str that reprs well": "class S(str):\n    __repr__ = lambda s: '2'\ndef f(x): return S()",
    "a metaclass": "class M(type):\n    __eq__ = lambda c, o: True\n    __hash__ = type.__hash__\nclass C(metaclass=M): pass\ndef f(x): return C",
    "Ellipsis": "def f(x): return ...",
    "the input": "def f(x): return [x]",
    "raises": "def f(x): raise SystemExit(0)",
    "exits": "import random\nrandom._os._exit(0)\ndef f(x): return 0",
    "a literal that is code": "def f(x): return '2'",
    "no f": "def g(x): return 2 * x",
    "f as a constant": "f = 2",
    "hangs": "def f(x):\n    while True: pass",
    "asks for the answer": "def f(x): return gold",
    "searches its memory": (
        "import types\ndef f(x):\n    gc = getattr(__import__('random')._os, 'sys').modules['gc']\n"
        "    return [o for o in gc.get_objects() if type(o) is list and o == [2, 4, 6]]"
    ),
    "searches its frames": (
        "import random\ndef f(x):\n    frame = getattr(random._os.sys, '_get' + 'frame')()\n"
        "    seen = []\n    while frame:\n        seen += [v for v in frame.f_locals.values() if type(v) is str]\n"
        "        frame = getattr(frame, 'f_' + 'back')\n    return seen"
    ),
    "replaces the writer": (
        "import random\nm = random._os.sys.modules\nfor n in list(m):\n"
        "    if n.endswith('.literal'):\n        m[n].write = lambda *a: '__import__(\"os\")'\ndef f(x): return 1"
    ),
    "replaces the frames": (
        "import random\nm = random._os.sys.modules\nfor n in list(m):\n"
        "    if n.endswith('.child'):\n        m[n].Region.put = lambda s, k, t='': None\ndef f(x): return 1"
    ),
}
