"""Nothing passes from one execution to another, in a task or between tasks."""

# ruff: noqa: E501

import pytest

from azr_population.referee import Program, Question, Referee, RefereeSettings


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
