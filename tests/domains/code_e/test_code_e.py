import pytest

from azr_population.config.schema import TaskConfig
from azr_population.domains.code.domain import Code, CodeE
from azr_population.domains.code_e.named_error import same_name
from azr_population.domains.task import ParsedProposal, Task

RULES = TaskConfig()


def outcome(referee, program, inputs, *imports):
    """The exception's name of a task, or why it is none."""
    proposal = ParsedProposal("code_e", program, (inputs,), imports=imports)
    (verdict,) = CodeE().judge([proposal], referee, RULES)
    return f"= {verdict.outputs[0]}" if isinstance(verdict, Task) else verdict


@pytest.mark.parametrize(
    ("program", "inputs", "wanted"),
    [
        ("def f(n):\n    return 1 // n", "0", "= ZeroDivisionError"),
        ("def f(n):\n    return 1 // n", "2", "= NoError"),
        ("def f(a):\n    return a[3]", "[1]", "= IndexError"),
        ("class Odd(ValueError): pass\ndef f(n):\n    raise Odd(n)", "1", "= Odd"),
        ("def f(n):\n    return n if n < 1 else f(n - 1) + ''", "1", "= TypeError"),
        (
            "import json\ndef f(s):\n    return json.loads(s)",
            "'{'",
            "= json.decoder.JSONDecodeError",
        ),
        ("def f(n):\n    return lambda: n", "1", "= NoError"),  # no literal
        ("def f(n):\n    raise SystemExit(n)", "3", "= SystemExit"),
        ("def f(n):\n    return f(n + 1)", "1", "= RecursionError"),
        (
            "class R:\n    def __repr__(s): return 1\ndef f(n):\n    return n and R()",
            "1",
            "= TypeError",
        ),
        ("1 / 0\ndef f(n):\n    return n", "1", "= ZeroDivisionError"),  # as in AZR
        ("class K:\n    def __len__(s): return -1\ndef f(k): return len(k)", "K()", "= ValueError"),
        ("def g(n):\n    return n", "1", "constant"),
        ("def f(n):\n    return 1", "1", "constant"),
        ("def f(n:", "1", "syntax_error"),
        ("def f(n):\n    while n: pass", "1", "timeout"),
        ("def f(n):\n    return [0] * 10 ** (n + 9)", "2", "memory"),
        ("import os\ndef f(n):\n    os._exit(n)", "1", "banned"),
        ("import random\ndef f(n):\n    return n // random.randrange(2)", "1", "nondeterministic"),
        ("import time\ndef f(n):\n    return n // (time.time_ns() % 2)", "1", "banned"),
        ("def f(n):\n    raise type('no name', (Exception,), {})(n)", "1", "tampered"),
        ("def f(n):\n    return n", "1 +", "bad_input"),
    ],
)
def test_what_a_program_raises(referee, program, inputs, wanted):
    assert outcome(referee, program, inputs) == wanted


def test_imports_stand_before_the_program(referee):
    assert outcome(referee, "def f(n):\n    return math.sqrt(n)", "-1", "import math") == (
        "= ValueError"
    )
    assert outcome(referee, "def f(n):\n    return math.sqrt(n)", "-1") == "= NameError"


def test_names_are_compared_as_azr_compares_them(referee):
    task = Task("code_e", "def f(n): return 1 // n", ("0",), ("ZeroDivisionError",))
    answers = ["ZeroDivisionError", "zerodivisionerror: division", "ZeroDivisionError by", "Zero"]
    ((*verdicts,),) = CodeE().grade([(task, [*answers, "", " ZeroDivisionError"])], referee)
    assert [verdict.solved for verdict in verdicts] == [True, True, True, False, False, False]
    assert same_name("NoError", "noerror")


def test_all_four_types_in_one_batch(referee):
    domain, program = CodeE(), "def f(n):\n    return [n // k for k in (1, 2)]"
    proposals = [
        ParsedProposal("code_o", program, ("7",)),
        ParsedProposal("code_e", program, ("'a'",)),
        ParsedProposal("code_i", program, ("8",)),
    ]
    tasks = domain.judge(proposals, referee, RULES)
    assert all(isinstance(task, Task) for task in tasks)
    assert [task.outputs[0] for task in tasks if isinstance(task, Task)] == [
        *("[7, 3]", "TypeError", "[8, 4]")
    ]
    asked = [(task, [domain.answer(task)]) for task in tasks if isinstance(task, Task)]
    assert all(verdict.solved for verdicts in domain.grade(asked, referee) for verdict in verdicts)
    others = [proposals[0], proposals[2]]
    assert Code().judge(others, referee, RULES) == [tasks[0], tasks[2]]
