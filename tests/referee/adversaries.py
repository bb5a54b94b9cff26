"""Programs of a teacher that is paid when right answers fail: data for test_referee_adversaries.py.

Each family maps a name to a program, or to (program, input, an answer that is right). A program is
either refused, or its right answer is solved, after any number of wrong ones.
"""

# ruff: noqa: E501

from __future__ import annotations

_WALK = "import random\nS = random._os.sys\n"
_FRAMES = (
    _WALK
    + """
def frames():
    fr = getattr(S, '_get' + 'frame')()
    while fr is not None:
        yield fr
        fr = getattr(fr, 'f_' + 'back')
def local(name):
    for fr in frames():
        l = getattr(fr, 'f_' + 'locals')
        if name in l: yield l[name]
"""
)
_GC = (
    _WALK
    + """
gc = S.modules['gc']
def objects(name):
    return [o for o in gc.get_objects() if type(o).__name__ == name]
"""
)
TELLS = {
    "frames: the kind of the call": _FRAMES + "def f(x):\n    k = [c.kind for c in local('call')]\n    return x if 0 in k else -x",
    "frames: whether it is made again": _FRAMES + "def f(x):\n    return x if any(w.stop_at_failure for w in local('work')) else 0",
    "frames: how many calls": _FRAMES + "def f(x):\n    return x if any(len(w.calls) != 4 and w.stop_at_failure for w in local('work')) else 0",
    "frames: the text of the input": (_FRAMES + "def f(x):\n    return x if any(c.arguments == '[1,2]' for c in local('call')) else 0", "[1,2]", "[1, 2]"),
    "frames: how deep": (_FRAMES + "def f(x):\n    return len(list(frames()))", "int('3')", "3"),
    "frames: the job's bytes": (_FRAMES + "def f(x):\n    return sum(len(b) for b in local('body'))", "3 ", "3"),
    "frames: limits of the job": _FRAMES + "def f(x):\n    return [list(j) for j in local('job')] and [j.microseconds // 1000 for j in local('job')]",
    "frames: an expression's own": (_FRAMES + "def f(x):\n    return [c.co_name for c in (getattr(fr, 'f_' + 'code') for fr in frames())].count('<module>')", "int('3')", "3"),
    "frames: work's imports": _FRAMES + "def f(x):\n    return [len(w.imports) for w in local('work')]",
    "gc: works": _GC + "def f(x):\n    return [w.stop_at_failure > 0 for w in objects('SandboxWork')] and x if any(w.stop_at_failure for w in objects('SandboxWork')) else 0",
    "gc: calls": _GC + "def f(x):\n    return sorted(c.kind for c in objects('Call'))",
    "gc: arguments": (_GC + "def f(x):\n    return [a.code is None for a in objects('Arguments')]", "int('3')", "3"),
    "sys.modules: the runner": _GC + "def f(x):\n    return [len(vars(r)) for r in gc.get_objects() if type(r).__name__ == 'Runner']",
    "sys.modules: the kind by patching": _WALK + "m = [v for k, v in S.modules.items() if k.endswith('.program')]\ndef f(x):\n    return len(m)",
    "depth: an expression": ("def d(n):\n    try: return d(n + 1)\n    except RecursionError: return n\ndef f(x): return d(0)", "int('3')", "3"),
    "depth: a default": ("def d(n):\n    try: return d(n + 1)\n    except RecursionError: return n\ndef f(x=0): return d(0)", "*()", ""),
    "depth: exactly": ("def d(n): return n and d(n - 1)\nN = 0\nwhile N < 2000:\n    try: d(N)\n    except RecursionError: break\n    N += 1\ndef f(x):\n    try: return d(N - 3)\n    except RecursionError: return -1", "int('3')", "3"),
    "depth: with C": ("def d(n):\n    try: return sorted([n], key=lambda m: d(m + 1))\n    except RecursionError: return [n]\ndef g(n):\n    try: return g(n+1)\n    except RecursionError: return n\ndef f(x): return g(0)", "[int(c) for c in '12']", "[1, 2]"),
    "identity: aliased lists": ("def f(x):\n    x[0].append(1)\n    return x", "[[]] * 2", "[[], []]"),
    "identity: is": ("def f(x): return x[0] is x[1]", "[[1]] * 2", "[[1], [1]]"),
    "identity: an interned string": ("def f(x): return x is 'word'", "str('word')", "'word'"),
    "identity: equal constants": ("def f(x): return x[0] is x[1]", "['a b', 'a b'] + []", "['a b', 'a b']"),
    "identity: big ints": ("def f(x): return x[0] is x[1]", "[10**30] * 2", "[1000000000000000000000000000000, 1000000000000000000000000000000]"),
    "identity: floats": ("def f(x): return x[0] is x[1]", "(lambda a: [a, a])(1.5)", "[1.5, 1.5]"),
    "identity: a tuple's": ("def f(x): return x[0] is x[1]", "[(1, 2)] * 2", "[(1, 2), (1, 2)]"),
    "identity: by id": ("def f(x): return id(x[0]) == id(x[1])", "[[1]] * 2", "[[1], [1]]"),
    "type: a subclass": ("def f(x): return x == 3 and type(x) is int", "True + 2", "3"),
}  # fmt: skip


def _alias(name: str, attribute: str, of: str) -> str:
    return f"""from typing import {name}
def count():
    A = {name}{of}
    try: A.{attribute} += 1
    except (AttributeError, TypeError): A.{attribute} = 1
    return A.{attribute}
"""


_ALIASES = [("List", ""), ("List", "[int]"), ("Dict", "[int, str]"), ("Optional", "[int]")]
_ALIASES += [("Union", "[int, str]"), ("Tuple", "[int, ...]"), ("Callable", "[[int], int]")]
_ALIASES += [("Deque", "[int]"), ("Sequence", "[int]"), ("Any", "")]
_ATTRIBUTES = ("_paramspec_tvars", "_name", "n")
STATE = {
    f"typing: {name}{of}.{attribute}": (
        _alias(name, attribute, of) + "def f(x): return x if count() < 3 else 0", "3", "3"
    )
    for name, of in _ALIASES
    for attribute in _ATTRIBUTES
}  # fmt: skip
_ONE = _alias("List", "_paramspec_tvars", "[int]")
STATE |= {
    "typing: a counter that resets itself": _ONE + "def f(x):\n    n = count()\n    if n >= 8: List[int]._paramspec_tvars = 0\n    return x if n in (1, 2, 3, 4) else 0",
    "typing: by the module": "import typing\ndef f(x):\n    A = typing.List[int]\n    try: A._paramspec_tvars += 1\n    except (AttributeError, TypeError): A._paramspec_tvars = 1\n    return x if A._paramspec_tvars < 4 else 0",
    "typing: in a default": "from typing import List\ndef f(x, A=List[int]):\n    try: A._paramspec_tvars += 1\n    except (AttributeError, TypeError): A._paramspec_tvars = 1\n    return x if A._paramspec_tvars < 4 else 0",
    "typing: out of an annotation": "from typing import List\ndef g(x: (A := List[int])): return x\ndef f(x):\n    try: A._paramspec_tvars += 1\n    except (AttributeError, TypeError): A._paramspec_tvars = 1\n    return x if A._paramspec_tvars < 4 else 0",
    "typing: caught by a dict": "from collections import defaultdict\nfrom typing import List\nD = defaultdict(list)\ndef g(x: D[List[int]]): return x\ndef f(x):\n    A = list(D)[0]\n    try: A._paramspec_tvars += 1\n    except (AttributeError, TypeError): A._paramspec_tvars = 1\n    return x if A._paramspec_tvars < 4 else 0",
    "typing: by a class": "class C:\n    from typing import List\ndef f(x):\n    A = C.List[int]\n    try: A._paramspec_tvars += 1\n    except (AttributeError, TypeError): A._paramspec_tvars = 1\n    return x if A._paramspec_tvars < 4 else 0",
    "memory: caught by another name": "E = Exception\ndef f(x):\n    try:\n        a = [None] * (9 * 2 ** 18)\n        a.append(a)\n        return x\n    except E:\n        return -1",
    "memory: caught in a tuple": "def f(x):\n    try:\n        a = [None] * (9 * 2 ** 18)\n        a.append(a)\n        return x\n    except (ValueError, Exception):\n        return -1",
    "memory: caught by a parameter": "def f(x, ValueError=Exception):\n    try:\n        a = [None] * (9 * 2 ** 18)\n        a.append(a)\n        return x\n    except ValueError:\n        return -1",
    "poison: a wrong answer sets it": _ONE + "def f(x):\n    if x != 3: List[int]._paramspec_tvars = 9\n    return x if count() < 5 else 0",
}  # fmt: skip
for _how, _catch in {"bare": "except:", "Exception": "except Exception:", "finally": None}.items():
    if _catch:
        _body = f"    try:\n        a = [None] * (9 * 2 ** 18)\n        a.append(a)\n        return x\n    {_catch}\n        return -1"
    else:
        _body = "    r = -1\n    try:\n        a = [None] * (9 * 2 ** 18)\n        a.append(a)\n        r = x\n    finally:\n        return r"
    STATE[f"memory in cycles: {_how}"] = ("def f(x):\n" + _body, "3", "3")
STATE |= {
    "memory in cycles of small objects": "def f(x):\n    try:\n        a = []\n        for i in range(175000):\n            b = [a]\n            a.append(b)\n        return x\n    except Exception:\n        return -1",
    "memory in a generator": "def f(x):\n    def g():\n        b = [None] * (9 * 2 ** 18)\n        yield h\n    try:\n        h = g()\n        next(h)\n        k = [h]\n        k.append(k)\n        return x\n    except Exception: return -1",
    "fragmentation by patterns": "import re\ndef f(x):\n    try:\n        a = []\n        for i in range(50):\n            a.append([(i, j) for j in range(9000)])\n            re.compile('p%d' % i)\n        a = None\n        b = [None] * (18 * 2 ** 18)\n        return x\n    except Exception: return -1",
    "a finaliser's time": "N = []\ndef g():\n    try: yield\n    finally: N.append(1)\ndef f(x):\n    a = g()\n    next(a)\n    a = [a]\n    a.append(a)\n    a = None\n    n = 0\n    k = []\n    while not N and n < 100000:\n        k.append([n])\n        n += 1\n    return n",
}  # fmt: skip

_C = "import random\nm = random._os.sys.modules\n"
CHANCE = {
    "a C generator": _C + "def f(x):\n    return m['_random'].Random().getrandbits(1)",
    "a C generator, by its bases": "import random\ndef f(x):\n    return random.Random.__bases__[0]().getrandbits(1)",
    "a C generator's seed": _C + "def f(x):\n    g = m['_random'].Random(1)\n    g.seed()\n    return g.getrandbits(1)",
    "getrandom by ctypes": _C + "c = m['ctypes']\ndef f(x):\n    b = c.create_string_buffer(1)\n    c.CDLL(None).getrandom(b, 1, 0)\n    return b.raw[0] & 1",
    "the clock by ctypes": _C + "c = m['ctypes']\ndef f(x):\n    return c.CDLL(None).time(None) & 1",
    "clock_gettime by ctypes": _C + "c = m['ctypes']\ndef f(x):\n    b = (c.c_long * 2)()\n    c.CDLL(None).clock_gettime(1, b)\n    return b[1] >> 10 & 1",
    "clock by ctypes": _C + "c = m['ctypes']\ndef f(x):\n    return c.CDLL(None).clock() // 64 & 1",
    "gettimeofday by ctypes": _C + "c = m['ctypes']\ndef f(x):\n    b = (c.c_long * 2)()\n    c.CDLL(None).gettimeofday(b, None)\n    return b[1] & 1",
    "the kernel's random bytes": _C + "c = m['ctypes']\ndef f(x):\n    g = c.CDLL(None).getauxval\n    g.restype = c.c_ulong\n    return sum(c.string_at(g(25), 16))",
    "python's own clock": _C + "c = m['ctypes']\ndef f(x):\n    t = c.c_long()\n    return c.pythonapi._PyTime_GetMonotonicClock() >> 10 & 1",
    "the clock's page": _C + "c = m['ctypes']\ndef f(x):\n    g = c.CDLL(None).getauxval\n    g.restype = c.c_ulong\n    return sum(c.string_at(g(33) - 4 * 4096 + k * 4096, 256)[j] for k in range(4) for j in range(256)) & 1",
    "processor time": _C + "c = m['ctypes']\ndef f(x):\n    b = (c.c_long * 2)()\n    c.CDLL(None).clock_gettime(2, b)\n    return b[1] >> 8 & 1",
    "process number": _C + "c = m['ctypes']\ndef f(x):\n    return c.CDLL(None).gettid()",
    "hash of nan": "def f(x): return hash(float('nan')) % 7",
    "hash of nan, computed": "def f(x): return hash(1e400 - 1e400) >> 4 & 1",
    "hash of a tuple with nan": "def f(x): return hash((x, float('nan'))) % 5",
    "hash of a complex nan": "def f(x): return hash(complex(0, float('nan'))) % 5",
    "a set with nan": "def f(x):\n    s = {1, 2, 3, float('nan'), 'a', 'b'}\n    return [str(v) for v in s].index('nan')",
    "a set of nans": "def f(x):\n    s = {(float('nan'), i) for i in range(6)}\n    return [v[1] for v in s]",
    "math.nan": "import math\ndef f(x): return [str(v) for v in {math.nan, 1, 2, 3, 4, 5}]",
    "decimal nan": "from decimal import Decimal\ndef f(x): return hash(Decimal('nan')) % 7",
    "nan of inf": "def f(x):\n    s = {('k', float('inf') * 0), 'b', 'c'}\n    return [v if type(v) is str else 0 for v in s]",
    "nan in a dict's keys": "def f(x): return hash(frozenset([float('nan')])) % 3",
}  # fmt: skip

# A program that counts its calls where plain programs could: code_f, its inputs and outputs then
# depend on the order.
ORDERED = {
    "typing": _ONE + "def f(x): return count() + 0 * x",
    "typing, again from the start": _ONE + "def f(x): return x + count() % 2",
    "typing, in part": _ONE + "def f(x): return x + count() // 3",
    "a module": "import math\ndef f(x):\n    math.n = getattr(math, 'n', 0) + 1\n    return math.n",
    "a class": "from collections import Counter\ndef f(x):\n    Counter.n = getattr(Counter, 'n', 0) + 1\n    return Counter.n * x",
    "memory": "def f(x):\n    try:\n        a = [None] * (9 * 2 ** 18)\n        a.append(a)\n        return x\n    except Exception: return -1",
}

# What one program leaves behind, and who would see it.
WRITERS = {
    "an attribute of an alias": "from typing import List\ndef f(x):\n    List[int]._paramspec_tvars = 7\n    return x",
    "an attribute of a bare alias": "from typing import Deque\ndef f(x):\n    Deque._paramspec_tvars = 7\n    return x",
    "the order of a union": "from typing import List, Union\ndef f(x):\n    List[Union[str, int]]\n    return x",
    "the order of a union, in annotations": "from typing import List, Union\ndef f(x: List[Union[str, int]]): return x",
    "memory in a cycle": "def f(x):\n    a = [None] * (20 * 2 ** 18)\n    a.append(a)\n    return x",
    "memory in a union": "from typing import Union\nclass A:\n    def __init__(self): self.a = [None] * (20 * 2 ** 18)\ndef g(x: Union[int, str]): return x\ndef f(x):\n    A()\n    return x",
    "floats": "def f(x):\n    a = [float(i) for i in range(5000)]\n    return x",
    "a generator that is not done": "def f(x):\n    def g():\n        try: yield g\n        finally: print('boo')\n    h = g()\n    next(h)\n    a = [h]\n    a.append(a)\n    return x",
}
READERS = {
    "an attribute of an alias": "from typing import List\ndef f(x): return getattr(List[int], '_paramspec_' + 'tvars', 0) == 7",
    "an attribute of an alias, plainly": "from typing import List\ndef f(x):\n    try: return List[int]._paramspec_tvars == 7\n    except AttributeError: return 0",
    "an attribute of a bare alias": "from typing import Deque\ndef f(x):\n    try: return Deque._paramspec_tvars == 7\n    except AttributeError: return 0",
    "the order of a union": "from typing import List, Union\ndef f(x): return str(List[Union[int, str]])",
    "the order of a union, formatted": "from typing import List, Union\ndef f(x): return f'{List[Union[int, str]]}'",
    "memory": "def f(x):\n    try:\n        a = [None] * (18 * 2 ** 18)\n        return x\n    except Exception: return -1",
    "memory by steps": "def f(x):\n    n = 0\n    try:\n        a = []\n        for n in range(20): a.append([None] * 2 ** 18)\n        return n\n    except: return n",
}


def _asked(family):
    """The same with an input and an answer: 3 and 3 where none are given."""
    return {
        name: case if type(case) is tuple else (case, "3", "3") for name, case in family.items()
    }


TELLS, STATE, CHANCE = map(_asked, (TELLS, STATE, CHANCE))
