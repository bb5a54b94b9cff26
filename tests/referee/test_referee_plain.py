"""Only plain programs share a child, and sharing changes no verdict."""

# ruff: noqa: E501

from __future__ import annotations

import sys

import pytest
from hostile_naked import NAKED
from hostile_walled import WALLED

from azr_population.referee import Program, Question, Reason, Referee, RefereeSettings
from azr_population.referee.sandbox.plain import is_plain

PLAIN = [
    "def f(x): return x + 1",
    "def f(n, m=[]):\n    m.append(n)\n    return sorted(m, key=lambda v: -v)",
    "def g(x: int) -> int: return x\ndef f(x):\n    return [g(i) for i in range(x) if i % 2]",
    "def f(s):\n    d = {}\n    for c in s:\n        d[c] = d.get(c, 0) + 1\n    return max(d.items())",
    "def f(s):\n    try:\n        return int(s)\n    except ValueError as e:\n        return str(e)",
    "def f(x):\n    def gen():\n        yield from range(x)\n    return list(gen())",
    "def f(x):\n    match x:\n        case [a, *b]: return a\n        case {'k': v}: return v\n        case _: return 0",
    "def f(x): return f'{x:>5}' + '%s' % x",
]  # fmt: skip

NOT_PLAIN = [
    "import math\ndef f(x): return math.pi",
    "def f(x): return __import__('os')",
    "def f(x): return x.__class__",
    "class A: pass\ndef f(x): return 1",
    "def f(x):\n    f.n = 1\n    return f.n",
    "def f(x):\n    del f.n",
    "def f(x): return getattr(x, 'real')",
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
    "_x = 1\ndef f(x): return _x",
    "def f(x): return (lambda: [__builtins__ for _ in x])()",
    "def f(x): raise SystemExit",
    "def f(x): return vars()",
    "def f(x): return memoryview(b'a')",
    "def f(x): return super()",
    "def f(frame): return frame.f_back",
]


@pytest.mark.parametrize("source", PLAIN)
def test_plain(source):
    assert is_plain(compile(source, "", "exec"))


@pytest.mark.parametrize("source", NOT_PLAIN)
def test_not_plain(source):
    assert not is_plain(compile(source, "", "exec"))


def test_a_name_may_be_long_and_a_jump_far():
    source = "def f(x):\n" + "".join(f"    v{i} = {i}\n" for i in range(400)) + "    x.y = v399\n"
    assert not is_plain(compile(source, "", "exec"))
    assert is_plain(compile(source.replace("x.y = v399", "return v399"), "", "exec"))


linux = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")


def program_questions() -> list[Question]:
    texts = [source for _, source in {**NAKED, **WALLED}.values()]
    honest = [f"def f(x): return [x] * {n}" for n in range(len(texts) + 20)]
    mixed = [source for pair in zip(honest, texts, strict=False) for source in pair]
    mixed += [*PLAIN, *honest[len(texts) :]]
    return [
        Question("code_i", source, ("3",), answers=("3", "4", "'a'", "f(1)")) for source in mixed
    ]


@linux
def test_sharing_changes_no_verdict():
    quick = [
        q for q in program_questions() if "while True" not in q.program and "10 **" not in q.program
    ]
    quick = [
        q for q in quick if not any(w in q.program for w in ("count()", "zlib", "a+b", "1000"))
    ]
    assert len(quick) > 250
    with Referee(RefereeSettings(workers=2, deadline=1.0, memory_mb=128)) as strict:
        expected = strict.judge(quick)
    with Referee(RefereeSettings(workers=2, deadline=1.0, memory_mb=128, share=16)) as sharing:
        found = sharing.judge(quick)
    for question, left, right in zip(quick, expected, found, strict=True):
        if Reason.TIMEOUT in (left.execution.reason, right.execution.reason):
            continue
        assert (left.execution.reason, left.execution.outputs) == (
            right.execution.reason,
            right.execution.outputs,
        ), question.program
        assert [g.reason for g in left.grades] == [g.reason for g in right.grades]


@linux
def test_one_that_hangs_or_floods_costs_its_neighbours_nothing():
    sources = [f"def f(x): return x + {n}" for n in range(60)]
    sources[7] = "def f(x):\n    while True: pass"
    sources[20] = "def f(x):\n    a = []\n    while True: a.append('x' * 10 ** 6)"
    sources[33] = "def f(x): return f(x)"
    sources[40] = "def f(x): return 'é' * 9000"
    sources[41] = "def f(x): return 'é' * 9000 if x else 1"
    with Referee(RefereeSettings(workers=2, deadline=1.0, memory_mb=64, share=16)) as referee:
        executions = referee.check([Program(source, ("3",)) for source in sources])
    reasons = {7: "timeout", 20: "memory", 33: "error"}
    for number, execution in enumerate(executions):
        assert str(execution.reason) in (
            reasons.get(number, "ok"),
            "timeout" if number in reasons else "ok",
        )
        if execution.valid and number not in (40, 41):
            assert execution.outputs == (str(3 + number),)
    assert len(executions[40].outputs[0]) == 9002


@linux
def test_functions_of_students_never_share():
    with Referee(RefereeSettings(workers=1, deadline=1.0, share=8)) as referee:
        jobs = []
        make = referee._pool._job
        referee._pool._job = lambda waiting: jobs.append(make(waiting)) or jobs[-1]
        function = "def f(x): return x"
        questions = [
            Question("code_f", function, ("1",), answers=(function, "def f(x): return 1"))
        ] * 4 + [Question("code_o", function, ("1",), answers=("1",))] * 8
        assert all(judged.grades[0].solved for judged in referee.judge(questions))
    sizes = [len(job.tasks) for job in jobs]
    assert sum(sizes) == 4 * 3 + 8
    for job in jobs:
        assert len(job.tasks) == 1 or not any(task.work.alone for task in job.tasks)
    assert max(sizes) > 1
