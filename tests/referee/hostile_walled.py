"""Hostile programs that run under the referee's defaults; entries are as in hostile_naked.py."""

# ruff: noqa: E501

from __future__ import annotations

WALLED = {
    # modules by every trick
    "import os": ({"banned"}, "import os\ndef f(x): return os.getpid()"),
    "from os": ({"banned"}, "from os import system\ndef f(x): return system('true')"),
    "import inside": ({"banned"}, "def f(x):\n    import subprocess\n    return 'escaped'"),
    "import os.path": ({"banned"}, "import os.path as p\ndef f(x): return p.exists('/')"),
    "__import__": ({"banned"}, "def f(x): return __import__('os').getcwd()"),
    "importlib": ({"banned"}, "import importlib\ndef f(x): return 'escaped'"),
    "import in exec": ({"banned"}, "def f(x):\n    exec('import os')\n    return 'escaped'"),
    "import in eval": ({"banned"}, 'def f(x): return eval("__import__(\'sys\')").platform'),
    "relative import": ({"banned"}, "from . import child\ndef f(x): return 'escaped'"),
    "import the sandbox": ({"banned"}, "import sandbox.child\ndef f(x): return 'escaped'"),
    "import ctypes": ({"banned"}, "import ctypes\ndef f(x): return 'escaped'"),
    "import a str in disguise": ({"banned", "error"}, "class S(str):\n    def partition(self, sep): return ('math', '', '')\ndef f(x): return __import__(S('os')).getcwd()"),
    "os through random": ({"forbidden"}, "import random\ndef f(x): return random._os.fork()"),
    "sys through a module": ({"forbidden"}, "import collections\ndef f(x): return collections._sys.modules['os'].fork()"),
    "sys through typing": ({"error"}, "import typing\ndef f(x): return typing.sys.exit()"),
    "loader": ({"banned"}, "import math\ndef f(x): return math.__loader__.load_module('os')"),
    "subclasses": ({"banned"}, "def f(x): return len(().__class__.__base__.__subclasses__())"),
    "subclasses, hidden": ({"ok"}, "def f(x):\n    c = getattr(object, '__sub' + 'classes__')()\n    return 'held' if len(c) > 100 else 'none'"),
    "builtins through a function": ({"banned", "error", "forbidden"}, "def f(x): return print.__self__.__import__('os').fork()"),
    "open": ({"error"}, "def f(x): return open('/etc/passwd').read()"),
    "input": ({"error"}, "def f(x): return input()"),
    "breakpoint": ({"error"}, "def f(x): return breakpoint()"),
    # frames
    "frame by _getframe": ({"banned"}, "import random\ndef f(x): return random._sys._getframe(1)"),
    "frame by traceback": ({"banned"}, "def f(x):\n    try: 1 / 0\n    except Exception as e:\n        return e.__traceback__.tb_frame.f_back.f_locals"),
    "frame by generator": ({"banned"}, "def f(x):\n    g = (g.gi_frame.f_back for _ in [0])\n    return next(g)"),
    "globals of a helper": ({"banned"}, "import re\ndef f(x): return re.compile.__globals__"),
    # outputs that lie about themselves
    "int that lies": ({"not_literal"}, "class I(int):\n    __eq__ = lambda s, o: True\ndef f(x): return I(3)"),
    "str that lies": ({"not_literal"}, "class S(str):\n    __repr__ = lambda s: '3'\ndef f(x): return S('a')"),
    "list that lies": ({"not_literal"}, "class L(list):\n    pass\ndef f(x): return [L()]"),
    "class that lies": ({"not_literal"}, "class C:\n    __class__ = int\n    __eq__ = lambda s, o: True\ndef f(x): return C()"),
    "metaclass": ({"not_literal"}, "class M(type):\n    __eq__ = lambda c, o: True\n    __hash__ = lambda c: hash(int)\nclass C(metaclass=M): pass\ndef f(x): return C()"),
    "key that lies": ({"not_literal"}, "class K:\n    __hash__ = lambda s: 1\n    __eq__ = lambda s, o: True\ndef f(x): return {K(): 1}"),
    "counter": ({"not_literal"}, "from collections import Counter\ndef f(x): return Counter('aab')"),
    "enum": ({"not_literal"}, "import enum\nclass E(enum.IntEnum):\n    A = 1\ndef f(x): return E.A"),
    "function": ({"not_literal"}, "def f(x): return f"),
    "generator": ({"not_literal"}, "def f(x): yield x"),
    "coroutine": ({"not_literal"}, "async def f(x): return x"),
    "Ellipsis": ({"not_literal"}, "def f(x): return ..."),
    "NaN": ({"not_literal"}, "def f(x): return float('nan')"),
    "infinity": ({"not_literal"}, "def f(x): return [1e999]"),
    # text
    "null byte": ({"syntax_error"}, "def f(x): return 1\x00"),
    "lone surrogate": ({"syntax_error"}, "def f(x): return '\ud800'"),
    "nested brackets": ({"syntax_error", "memory"}, "def f(x): return " + "(" * 5000 + ")" * 5000),
    "nested minuses": ({"syntax_error", "memory", "crashed"}, "def f(x): return " + "-" * 90000 + "1"),
    "half a program": ({"syntax_error"}, "def f(x):\n    return (1,\n"),
    "no f": ({"no_function"}, "def g(x): return x"),
    "f is no function": ({"error"}, "f = 3"),
    "too long": ({"too_large"}, "#" * 300000),
}  # fmt: skip
