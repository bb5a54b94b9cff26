"""The judge of functions. Problems of no dataset: evalplus's special rules are for its own."""

import os

import needs
import pytest
from refusals import refuses

from azr_population.eval.benchmark import functions
from azr_population.eval.benchmark.benchmarks import BENCHMARKS, locate, read_benchmark
from azr_population.eval.benchmark.functions import FunctionProblem

SECRET = "xylophone-4711"


def problem(canonical, base, plus=(), name="f", atol=0.0, **more):
    return FunctionProblem(f"own/{name}", "", name, canonical, base, list(plus), atol, **more)


DOUBLE = problem("def f(x):\n    return 2 * x\n", [[2], [0]], [[-3], [10**30], ["ab"]])
HALVES = problem("def f(xs):\n    return [x / 3 for x in xs]", [[[1, 2]]], [[[]], [[1e9]]])
MIXED = problem(
    "def f(x):\n    return {1: (x, [x]), 'a': {x, 2}}", [[1], [True], [2.5]], [["s"]], name="f"
)
WORD = problem(f"def f(x):\n    return {SECRET!r} * x\n", [[1]], [[2], [3]])


@pytest.fixture(scope="module")
def judge():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions, "INPUT_SECONDS", 0.5)
        yield lambda asked, *solutions: FunctionProblem.judge(
            [(asked, solution) for solution in solutions]
        )


def reasons(verdicts):
    return [
        (v.passed, v.detail.partition(" ")[0] == "plus" or v.passed, v.reason) for v in verdicts
    ]


def test_right_and_wrong(judge):
    assert reasons(
        judge(
            DOUBLE,
            DOUBLE.canonical,
            "import functools\ndef f(x): return x + x",
            "def f(x): return x + 2",
            "def f(x): return abs(2 * x) if x != 'ab' else 'abab'",
            "def f(x): return x ** 2",
            "def g(x): return 2 * x",
            "def f(x: return",
            "",
            "def f(x, y): return 2 * x",
            "import nothing_of_the_kind\ndef f(x): return 2 * x",
        )
    ) == [
        (True, True, "passed"),
        (True, True, "passed"),
        (False, False, "wrong"),
        (False, True, "wrong"),
        (False, True, "wrong"),
        (False, False, "error"),
        (False, False, "error"),
        (False, False, "no answer"),
        (False, False, "error"),
        (False, False, "error"),
    ]


def test_equality_is_python_s_with_evalplus_tolerance(judge):
    third = "def f(xs):\n    return [x * 0.3333333333333333 for x in xs]"
    assert reasons(judge(HALVES, HALVES.canonical, third))[1] == (True, True, "passed")
    off = "def f(xs):\n    return [x / 3 + 1e-3 for x in xs]"
    as_tuple = "def f(xs):\n    return tuple(x / 3 + 1e-9 for x in xs)"
    assert [v.passed for v in judge(HALVES, off, as_tuple)] == [False, False]


def test_values_of_all_kinds_cross_the_wall(judge):
    same = "def f(x):\n    from collections import OrderedDict\n"
    same += "    return OrderedDict([('a', frozenset([2, x])), (1, (x, [x]))])"
    unequal = "def f(x):\n    return {1: [x, [x]], 'a': {x, 2}}"
    assert [v.passed for v in judge(MIXED, MIXED.canonical, same, unequal)] == [True, True, False]


ODD = {
    "inf": ("def f(x):\n    return float('inf') if x else -1e400", [[1], [0]]),
    "complex": ("def f(x):\n    return x * 1j", [[2], [0.5]]),
    "bytes": ("def f(x):\n    return bytes([x]) * 2", [[200]]),
    "big": ("def f(x):\n    return 7 ** x", [[20_000]]),
    "long": ("def f(x):\n    return list(range(x))", [[30_000]]),
    "huge": ("def f(x):\n    return [(i, i) for i in range(x)]", [[300_000]]),
    "deep": ("def f(x):\n    r = []\n    for i in range(x): r = [r]\n    return r", [[40]]),
    "deque": ("def f(x):\n    from collections import deque\n    return deque([x])", [[3]]),
    "none": ("def f(x):\n    return None", [[3]]),
    "text": ("def f(x):\n    return 'é\\ud800\\n' * x", [[3]]),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_values_equal_themselves_and_nothing_else(judge, kind):
    source, inputs = ODD[kind]
    asked = problem(source, inputs, name="f")
    changed = source.replace("return ", "return [] if x in (0.5, 3, 40) else 1, ")
    right, wrong = judge(asked, source, changed)
    assert (right.passed, wrong.passed) == (True, False), (right, wrong)


def test_what_no_program_can_hold_costs_no_other_answer():
    needs.module("evalplus", "-e '.[eval]'")
    surrogate, nothing, right = FunctionProblem.read_all(
        [(DOUBLE, "x = '\ud800'\0"), (DOUBLE, "\0"), (DOUBLE, DOUBLE.canonical)]
    )
    assert (
        "\ud800" not in surrogate
        and "\0" not in nothing
        and right.strip() == DOUBLE.canonical.strip()
    )


def test_a_value_that_equals_nothing_passes_nobody(judge):
    asked = problem("def f(x):\n    return float('nan')", [[1]])
    assert [v.passed for v in judge(asked, asked.canonical)] == [False]


def test_each_set_of_inputs_has_a_namespace_of_its_own_and_inputs_are_fresh(judge):
    counting = "n = 0\ndef f(x):\n    global n\n    n += 1\n    return 2 * x if n < 4 else None"
    assert reasons(judge(DOUBLE, counting)) == [(True, True, "passed")]
    asked = problem("def f(xs):\n    xs.append(1)\n    return xs", [[[0]]], [[[0]]])
    assert [v.passed for v in judge(asked, asked.canonical)] == [True]


def test_base_is_told_apart_where_plus_does_not_end(judge):
    stuck = "def f(x):\n    while x == -3: pass\n    return 2 * x"
    assert reasons(judge(DOUBLE, stuck)) == [(False, True, "timeout")]
    assert reasons(judge(DOUBLE, "while True: pass")) == [(False, False, "timeout")]


def test_a_canonical_solution_that_fails_is_an_error(judge):
    with refuses("own/f"):
        judge(problem("def f(x):\n    return 1 / x", [[0]]), "def f(x): pass")


HOSTILE = {
    "looks through all objects": """
import gc
def f(x):
    begin = 'xylo' + 'phone-'
    found = [
        value
        for held in gc.get_objects() if isinstance(held, (dict, list, tuple))
        for value in (held.values() if isinstance(held, dict) else held)
        if isinstance(value, str) and begin in value
    ]
    return found[0] * x if found else 'nothing found'
""",
    "walks the frames": """
import sys
def f(x):
    frame, seen = sys._getframe(), []
    while frame:
        seen.append(repr(frame.f_locals) + repr(frame.f_globals))
        frame = frame.f_back
    text = ''.join(seen)
    at = text.find('xylo' + 'phone')
    return text[at:at + 14] * x if at >= 0 else 'nothing found'
""",
    "reads the memory": """
def f(x):
    try:
        return open('/proc/self/mem', 'rb').read(1)
    except BaseException as error:
        return 'no memory'
""",
    "leaves early": "import os\nos._exit(0)\ndef f(x): return None",
    "leaves by exception": "raise SystemExit(0)",
    "leaves in the call": "import sys\ndef f(x): sys.exit(0)",
    "says it equals everything": """
class Same:
    def __eq__(self, other): return True
    def __hash__(self): return 0
    def __repr__(self): return "'xylophone'"
def f(x): return Same()
""",
    "is a text that equals everything": """
class Same(str):
    def __eq__(self, other): return True
    def __len__(self): return 14
def f(x): return Same('a')
""",
    "patches builtins": """
import builtins
builtins.len = lambda *a: 0
builtins.repr = lambda *a: "'right'"
builtins.sorted = builtins.isinstance = builtins.type = lambda *a: True
def f(x): return 1
""",
    "patches what packs the outputs": """
import json, zlib, base64, hashlib, marshal
json.dumps = lambda *a, **k: '[{"lines": [], "error": "", "seconds": 0}] '
marshal.loads = lambda *a: []
def f(x): return 1
""",
    "rewrites its judge": """
import sys
frame = sys._getframe(1)
frame.f_globals['encode'] = lambda value: ['str', 'text', "'anything'"]
def f(x): return 1
""",
    "prints a verdict": "print('PASSED', flush=True)\ndef f(x):\n    print('[true]')\n    return 1",
    "floods": "def f(x):\n    while True: print('x' * 10**6)",
    "forks": "import os\ndef f(x):\n    while True: os.fork()",
    "threads": "import threading\ndef f(x):\n    while True: threading.Thread(target=f).start()",
    "eats memory": "def f(x):\n    a = []\n    while True: a.append(bytearray(10**8))",
    "eats memory in one go": "def f(x): return [0] * 10**12",
    "writes a file": "open('/tmp/a_solution_was_here', 'w').write('x')\ndef f(x): return 1",
    "opens a socket": "import socket\ndef f(x): return socket.create_connection(('127.0.0.1', 1))",
    "runs a program": "import os\ndef f(x): return os.system('touch /tmp/a_solution_was_here')",
    "returns what it was given": "def f(*a, **k): return a",
    "sleeps": "import time\ndef f(x):\n    time.sleep(3600)",
    "ignores signals": """
import signal
for n in range(1, 60):
    try: signal.signal(n, signal.SIG_IGN)
    except BaseException: pass
def f(x):
    while True: pass
""",
    "recurses": "def f(x): return f(x)",
    "crashes": "import ctypes\ndef f(x): return ctypes.string_at(0)",
}


@pytest.mark.slow
def test_no_hostile_program_passes_and_none_escapes(judge):
    from pathlib import Path

    marker = Path("/tmp/a_solution_was_here")
    marker.unlink(missing_ok=True)
    *verdicts, right = judge(WORD, *HOSTILE.values(), WORD.canonical)
    passed = {name: v for name, v in zip(HOSTILE, verdicts, strict=True) if v.passed}
    assert not passed
    assert right.passed
    assert not marker.exists()


@pytest.mark.slow
def test_spoilt_solutions_of_mbpp_do_not_pass():
    """Needs the benchmark's own data: `BENCHMARK_DATA=DIR` or `AZR_HOME`."""
    needs.module("evalplus", "-e '.[eval]'")
    folder = os.environ.get("BENCHMARK_DATA", "")
    if not locate(BENCHMARKS["mbpp_plus"], folder):
        pytest.skip("the data of mbpp_plus: BENCHMARK_DATA=DIR, see docs/evaluation.md")
    asked = read_benchmark("mbpp_plus", folder).problems
    right = [(problem, problem.canonical) for problem in asked]
    spoilt = [
        (problem, f"{source}\n{problem.entry_point} = lambda *given: 271828182.5")
        for problem, source in right
        # evalplus lets anything pass that is something, for a few problems.
        if problem.id not in ("Mbpp/737", "Mbpp/787", "Mbpp/794")
    ]
    verdicts = FunctionProblem.judge(right + spoilt)
    assert sum(v.passed for v in verdicts[: len(asked)]) == len(asked) == 378
    wrong = [p.id for (p, _), v in zip(spoilt, verdicts[len(asked) :], strict=True) if v.passed]
    assert not wrong
