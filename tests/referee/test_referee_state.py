"""Nothing passes from one execution to another, in a task or between tasks."""

# ruff: noqa: E501

from functools import partial

import pytest

from azr_population.referee import Program, Question, Referee, RefereeSettings, procedures


@pytest.fixture(scope="module")
def referee():
    with Referee(RefereeSettings(workers=1)) as referee:
        yield referee


# Each counts its calls in some place that a new namespace does not empty; `n` is the count.
COUNTERS = {
    "a module": "import math\ndef count():\n    math.n = getattr(math, 'n', 0) + 1\n    return math.n\n",
    "a module that plain programs get": "import math\ndef count():\n    try: math.n += 1\n    except AttributeError: math.n = 1\n    return math.n\n",
    "a class of a module": "from collections import Counter\ndef count():\n    try: Counter.n += 1\n    except AttributeError: Counter.n = 1\n    return Counter.n\n",
    "a function of a module": "import heapq\ndef count():\n    heapq.nsmallest.n = getattr(heapq.nsmallest, 'n', 0) + 1\n    return heapq.nsmallest.n\n",
    "an alias of typing": "from typing import Callable\ndef count():\n    try: Callable.n += 1\n    except AttributeError: Callable.n = 1\n    return Callable.n\n",
    "a flag": "import re\ndef count():\n    try: re.I.n += 1\n    except AttributeError: re.I.n = 1\n    return re.I.n\n",
    "a list of a module": "import keyword\ndef count():\n    keyword.kwlist.append('n')\n    return keyword.kwlist.count('n')\n",
    "the builtins": "def count():\n    b = globals()['__built' + 'ins__']\n    b['n'] = b.get('n', 0) + 1\n    return b['n']\n",
    "the decimal context": "import decimal\ndef count():\n    decimal.getcontext().prec += 1\n    return decimal.getcontext().prec - 28\n",
    "a shared cache": "import functools\ndef count():\n    functools.n = getattr(functools, 'n', [])\n    functools.n.append(0)\n    return len(functools.n)\n",
    "an abstract class": "import collections.abc\ndef count():\n    n = 1 + isinstance(1, collections.abc.Mapping)\n    collections.abc.Mapping.register(int)\n    return n\n",
    "itself": "def count():\n    try: f.n += 1\n    except AttributeError: f.n = 1\n    return f.n\n",
    "a default": "def count(n=[]):\n    n.append(0)\n    return len(n)\n",
    "a class": "class A:\n    n = 0\ndef count():\n    A.n += 1\n    return A.n\n",
}  # fmt: skip

# What a program would return at its n-th call if its calls were counted.
CHEATS = ("x + n % 2", "x + n % 6", "x if n < 3 else 0", "x if n in (1, 2, 9, 10) else 3")


@pytest.mark.parametrize("place", COUNTERS)
def test_each_execution_is_the_first(referee, place):
    answers = ("3.5", "3", "4", "2", "3.5 ", "1", "9", "-3")
    start = f"{COUNTERS[place]}def f(x):\n    n = count()\n    return "
    judged = referee.judge(
        Question("code_i", start + cheat, ("3",), answers=answers) for cheat in CHEATS
    )
    for cheat, judgement in zip(CHEATS, judged, strict=True):
        first = eval(cheat, {"x": 3, "n": 1})
        assert judgement.execution.outputs == (str(first),), cheat
        assert [g.solved for g in judgement.grades] == [a == "3" for a in answers], cheat


@pytest.mark.parametrize("place", COUNTERS)
def test_tasks_do_not_see_each_other(referee, place):
    program = Program(f"{COUNTERS[place]}def f(x): return count()", ("0", "1"))
    assert {execution.outputs for execution in referee.check([program] * 8)} == {("1", "1")}


@pytest.mark.parametrize("place", COUNTERS)
def test_a_function_cannot_count_the_hidden_inputs(referee, place):
    answer = f"{COUNTERS[place]}def f(x): return 10 * count()"
    question = Question(
        "code_f", inputs=("5", "7", "6"), outputs=("10", "20", "30"), answers=(answer,)
    )
    ((grade,),) = referee.grade([question])
    assert (grade.solved, grade.accuracy) == (False, pytest.approx(1 / 3))


@pytest.mark.parametrize("prelude", ["", "import random\n"])
def test_recursion_goes_as_deep_in_a_shared_child_as_alone(referee, prelude, monkeypatch):
    program = Program(
        f"{prelude}def f(x):\n    try: return f(x + 1)\n    except RecursionError: return x", ("0",)
    )
    shared = referee.check([program])[0].outputs
    monkeypatch.setattr(procedures, "_work", partial(procedures._work, alone=True))
    assert referee.check([program])[0].outputs == shared != ()


# Programs that try to leave something behind, and programs that would see it.
ATTEMPTS = {
    "a name in a module": ("import math\ndef f(x):\n    math.pi = 3\n    return x", "import math\ndef f(x): return math.pi > 3"),
    "a module taken from another": ("def f(x):\n    try:\n        from collections import abc\n        abc.Mapping.n = 1\n    except BaseException: pass\n    return x", "import collections.abc\ndef f(x): return not hasattr(collections.abc.Mapping, 'n')"),
    "an import that fails, caught": ("def f(x):\n    try: import keyword\n    except Exception: return 0\n    keyword.kwlist.clear()\n    return x", "import keyword\ndef f(x): return bool(keyword.kwlist)"),
    "an alias made anew": ("from typing import List\nclass A:\n    def __init__(self): self.x = List\ndef f(x):\n    A().x.n = 1\n    return x", "from typing import List\ndef f(x): return not hasattr(List, 'n')"),
    "a feature of the future": ("from __future__ import annotations\ndef f(x):\n    annotations.n = 1\n    return x", "from __future__ import annotations\ndef f(x): return not hasattr(annotations, 'n')"),
    "a counter's method": ("from collections import Counter\ndef f(x):\n    Counter.most_common = None\n    return x", "from collections import Counter\ndef f(x): return Counter('aa').most_common() == [('a', 2)]"),
    "a method set through a class of its own": ("from collections import Counter\nclass C(Counter): pass\ndef f(x):\n    C.most_common = None\n    return x", "from collections import Counter\ndef f(x): return Counter('aa').most_common() == [('a', 2)]"),
    "self given a module": ("import math\nclass A:\n    def g(self): self.tau = 1\ndef f(x):\n    A.g(math)\n    return x", "import math\ndef f(x): return math.tau > 6"),
    "a loop over an attribute": ("import math\ndef f(x):\n    for math.e in [1]: pass\n    return x", "import math\ndef f(x): return math.e > 2"),
    "an attribute deleted": ("import math\ndef f(x):\n    del math.inf\n    return x", "import math\ndef f(x): return math.inf > 0"),
    "what was printed": ("def f(x):\n    print(x, end='', flush=True)\n    return x", "def f(x): return True"),
    "an error's own class": ("class E(Exception):\n    def __init__(self): self.x = 1\ndef f(x): raise E()", "def f(x): return True"),
    "a cache of patterns": ("import re\nclass S(str):\n    def lower(self): return 'b'\ndef f(x): return bool(re.match(S('a'), 'a'))", "import re\ndef f(x): return bool(re.match('a', 'a')) and re.compile('a').pattern.lower() == 'a'"),
    "a function cached": ("from functools import lru_cache\n@lru_cache\ndef g(x): return []\ndef f(x):\n    g(1).append(1)\n    return g(1)", "from functools import lru_cache\n@lru_cache\ndef g(x): return []\ndef f(x): return not g(1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTEMPTS)
def test_a_plain_program_leaves_no_trace(referee, name):
    attempt, probe = ATTEMPTS[name]
    programs = [Program(source, ("3",)) for source in (attempt, probe, attempt, probe)]
    executions = referee.check(programs)
    assert [executions[1].outputs, executions[3].outputs] == [("True",)] * 2
    assert executions[0] == executions[2]
