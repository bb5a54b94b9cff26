"""Only the calls of plain programs share a child, and sharing changes no verdict."""

# ruff: noqa: E501

from functools import partial

import pytest
from hostile_naked import NAKED
from hostile_walled import WALLED

from azr_population.referee import Question, Reason, Referee, RefereeSettings, procedures
from azr_population.referee.sandbox.batch_safety import batch_safety

PLAIN = [
    "def f(x): return x + 1",
    "def f(n, m=[]):\n    m.append(n)\n    return sorted(m, key=lambda v: -v)",
    "def g(x: int) -> int: return x\ndef f(x):\n    return [g(i) for i in range(x) if i % 2]",
    "def f(s):\n    d = {}\n    for c in s:\n        d[c] = d.get(c, 0) + 1\n    return max(d.items())",
    "def f(x):\n    def gen():\n        yield from range(x)\n    return list(gen())",
    "def f(x):\n    match x:\n        case [a, *b]: return a\n        case {'k': v}: return v\n        case _: return 0",
    "def f(x): return f'{x:>5}' + '%s' % x",
    "class A:\n    'doc'\n    n = 1\n    def __init__(self, x): self.x, self.y = x, 2\n    def g(self): return self.y\ndef f(x): return A(x).g()",
    "class A(list): pass\nclass B(A):\n    @property\n    def p(self): return 1\n    @staticmethod\n    def s(): return 2\ndef f(x): return B().p",
    "def f(x):\n    f.n = 1\n    del f.n",
    "def f(x, _y=1): return [_y for _ in x] + [__ for __ in x]",
    "def f(x, type=0, input=1): return type, input",
    "def f(frame, format): return frame, format",
    "if __name__ == 'builtins':\n    def f(x): return hasattr(x, '__len__')",
]  # fmt: skip

NOT_PLAIN = [
    "import math\ndef f(x): return math.pi",
    "from __future__ import annotations\ndef f(x: int): return 1",
    "def f(x):\n    from re import sub\n    return x",
    "from math import *\ndef f(x): return pi",
    "_x = 1\ndef f(x): return _x",
    "def f(x): return x._name",
    "def f(x): return __import__('os')",
    "def f(x): return x.__class__",
    "def f(x): return x._private.__dict__",
    "def f(x): return getattr(x, 'real')",
    "def f(x): setattr(x, 'real', 1)",
    "def f(x): return type(x)",
    "def f(x): return eval('1')",
    "def f(x): return globals()",
    "def f(x): return open('/etc/passwd')",
    "def f(x): return id(x)",
    "def f(x): return '{0.__class__}'.format(x)",
    "def f(x): return '{x.__class__}'.format_map({'x': x})",
    "def f(x): return format(x)",
    "def f(x):\n    g = (i for i in [1])\n    return g.gi_frame",
    "def f(x):\n    try: 1 / 0\n    except Exception as e: return e.__traceback__",
    "def f(x): return int.mro()",
    "async def f(x): return 1\nasync def g(x): return await f(x)",
    "def f(x):\n    match x:\n        case object(gi_frame=y): return y",
    "def f(x): return (lambda: [__builtins__ for _ in x])()",
    "def f(x): raise SystemExit",
    "def f(x): return vars()",
    "def f(x): return memoryview(b'a')",
    "class A:\n    def g(self): return super().g()\ndef f(x): return A().g()",
    "def f(frame): return frame.f_back",
    "class A:\n    def __getattribute__(self, n): return n\ndef f(x): return A().x",
    "class A:\n    def __eq__(self, o): return True\ndef f(x): return A() == x",
    "class A:\n    __slots__ = ('x',)\ndef f(x): return 1",
    "class A: x: int = 3\ndef f(x): return 1",
    "class A(metaclass=type): pass\ndef f(x): return 1",
    "def f(x): return f.__name__",
    "def __init__(x): return x\nf = f.__init__",
    "compile = 1\ndef f(x): return compile",
    "def f(x):\n    global __builtins__\n    __builtins__ = {}",
    "def f(x): return print.func_code",
]  # fmt: skip


@pytest.mark.parametrize("source", PLAIN)
def test_plain(source):
    assert batch_safety(compile(source, "", "exec")).safe


@pytest.mark.parametrize("source", NOT_PLAIN)
def test_not_plain(source):
    assert not batch_safety(compile(source, "", "exec")).safe


def test_a_name_may_be_long_and_a_jump_far():
    lines = "".join(f"    v{i} = x.a{i}\n" for i in range(400))
    source = f"def f(x):\n{lines}    return x.__dict__\n"
    assert not batch_safety(compile(source, "", "exec")).safe
    assert batch_safety(compile(source.replace("x.__dict__", "v399"), "", "exec")).safe


SLOW = ("while True", "10 **", "count()", "zlib", "a+b", "1000")


def verdict(judgement):
    execution = judgement.execution
    return execution.reason, execution.outputs, [grade.reason for grade in judgement.grades]


def test_sharing_changes_no_verdict(monkeypatch):
    """Hostile programs between honest ones."""
    hostile = [s for _, s in {**NAKED, **WALLED}.values() if not any(word in s for word in SLOW)]
    sources = [*PLAIN, *(f"def f(x): return [x] * {n}" for n in range(20))]
    for number, source in enumerate(hostile):
        sources += [source, f"def f(x): return x * {number}"]
    assert len(sources) > 250
    answers = ("3", "4", "'a'", "f(1)")
    questions = [Question("code_i", source, ("3",), answers=answers) for source in sources]
    settings = RefereeSettings(workers=2, timeout=30.0, cpu_seconds=0.5, memory_mb=128)
    with Referee(settings) as referee:
        shared = referee.judge(questions)
        monkeypatch.setattr(procedures, "_work", partial(procedures._work, alone=True))
        single = referee.judge(questions)
    for source, alone, together in zip(sources, single, shared, strict=True):
        if Reason.TIMEOUT not in (alone.execution.reason, together.execution.reason):
            assert verdict(alone) == verdict(together), source
