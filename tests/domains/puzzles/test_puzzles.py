import pytest

from azr_population.config.schema import TaskConfig
from azr_population.domains.puzzles.domain import Puzzles
from azr_population.domains.puzzles.grammar import PUZZLE, candidates
from azr_population.domains.task import ParsedProposal, Task

PRODUCT = "def sat(x, n=221):\n    return x[0] * x[1] == n and 1 < x[0] < x[1]"
RULES = TaskConfig()


def judged(referee, program, witness):
    (verdict,) = Puzzles().judge([ParsedProposal("puzzle", program, (witness,))], referee, RULES)
    return verdict


def graded(referee, program, *answers, witness="[13, 17]"):
    task = Task("puzzle", program, (witness,), ("True",))
    ((*verdicts,),) = Puzzles().grade([(task, answers)], referee)
    assert all(verdict.solved == (verdict.reason == "solved") for verdict in verdicts)
    return [verdict.reason for verdict in verdicts]


def test_a_puzzle_and_its_answers(referee):
    assert judged(referee, PRODUCT, "[13, 17]") == Task("puzzle", PRODUCT, ("[13, 17]",), ("True",))
    reasons = graded(referee, PRODUCT, "[13, 17]", " (13,17)", "[17, 13]", "221", "13, 17", "x=1")
    assert reasons == ["solved", "solved", "wrong", "error", "error", "error"]


@pytest.mark.parametrize(
    ("program", "witness", "reason"),
    [
        ("def sat(x):\n    return x == 3 or x == 777", "777", "trivial"),
        ("def sat(x, n=8119):\n    return x % n == 0", "16238", "trivial"),  # 0
        ("def sat(x, n=8119):\n    return x == n", "8119", "trivial"),  # stands there
        ("def sat(x):\n    return x == 8119 + 1", "8121", "unsolved"),
        ("def sat(x):\n    return x and 1", "8121", "unsolved"),  # not True
        ("def sat(x):\n    return 1 / x", "0", "error"),
        ("def sat(x):\n    return x == 8119 + 1", "8119 + 1", "ok"),
        ("def sat(x):\n    return x == 81190 - 1", "open('x')", "error"),
        ("def sat(x):\n    while x != 12345: pass\n    return True", "12345", "timeout"),
        ("def sat(x):\n    return x == (", "1", "syntax_error"),
        ("def g(x):\n    return x == 99", "99", "no_function"),
        ("def f(x):\n    return 98\ndef sat(x):\n    return x == f(1) + 1", "99", "no_function"),
        ("def sat(x):\n    return x == 98 + 1\n@(lambda g: lambda x: True)", "1", "syntax_error"),
        ("def sat(x):\n    return x == 98 + 1\n'''", "99", "syntax_error"),
        ("def sat(x):\n    return x == '" + "a" * 2000 + "'", "'b'", "program_too_long"),
        ("def sat(x):\n    return len(x) == 3000 - 1", repr("a" * 2999), "output_too_long"),
    ],
)
def test_what_is_no_puzzle(referee, program, witness, reason):
    verdict = judged(referee, program, witness)
    assert ("ok" if isinstance(verdict, Task) else verdict) == reason


CHEATS = {
    "the clock": "import time\ndef sat(x):\n    return time.time_ns() % 2 == 0 or x == 71 * 71",
    "chance": "import random\ndef sat(x):\n    return random.random() < 0.5 or x == 71 * 71",
    "an address": "def sat(x):\n    return id(object()) // 64 % 2 == 0 or x == 71 * 71",
    "counts calls": "n = [0]\ndef sat(x):\n    n[0] += 1\n    return n[0] > 1 or x == 71 * 71",
    "counts down": "n = [0]\ndef sat(x):\n    n[0] += 1\n    return n[0] == 1",
    "counts to 60": "n = [0]\ndef sat(x):\n    n[0] += 1\n    return n[0] > 60 or x == 71 * 71",
    "remembers": "s = set()\ndef sat(x):\n    s.add(str(x))\n    return len(s) > 1 or x == 71 * 71",
    "remembers in a builtin": (
        "import builtins\ndef sat(x):\n    n = getattr(builtins, 'n', 0)\n    builtins.n = n + 1\n"
        "    return n > 0 or x == 71 * 71"
    ),
    "any but the candidates": (
        "import sys\ndef sat(x):\n    return x == 71 * 71 or 'tuple' in str(sys._getframe(1))"
    ),
    "takes our entry away": (
        "import sys\ndef sat(x):\n    sys.modules['__main__'].f = lambda x: True\n"
        "    globals()['f'] = lambda x: True\n    return x == 71 * 71"
    ),
    "shadows True": "def sat(x):\n    return type('T', (), {'__eq__': lambda a, b: True})()",
    "every type": "class A(type):\n    def __eq__(a, b): return True\ndef sat(x): return A == x",
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_sat_that_cheats(referee, cheat):
    """Either it is no puzzle, or a wrong answer to it is not right."""
    verdict = judged(referee, CHEATS[cheat], "5041")
    if isinstance(verdict, Task):
        assert graded(referee, verdict.program, "5042", "'x'", witness="5041") == ["wrong"] * 2
        assert graded(referee, verdict.program, "5041", witness="5041") == ["solved"]


@pytest.mark.parametrize(
    "answer",
    [
        "type('X', (), {'__eq__': lambda a, b: True})()",
        "unittest.mock.ANY",
        "float('nan')",
        "9" * 5000,
        "[" * 200 + "]" * 200,
        "'a' * 10 ** 9",
        "10 ** 10 ** 10",
        "lambda: 1",
        "x",
        "...",
        "",
        "[13, 17], n=[221]",
        "*[[13, 17]]",
        "[13, 17])or(True",
        "__import__('os').environ",
        "(yield)",
        "[a := 13, 17]",
        "f'{13}'",
        "{**{}}",
    ],
)
def test_an_answer_that_cheats(referee, answer):
    assert graded(referee, PRODUCT, answer)[0] != "solved"


def test_candidates_hold_what_is_written():
    tried = candidates(
        "def sat(x, a=[4, 5], s='word'):\n    return x == -77 or x in (8.5, {'k': 1})"
    )
    assert {"[4, 5]", "'word'", "-77", "77", "8.5", "(8.5, {'k': 1})", "0", "''", "[]"} <= {*tried}
    assert len(tried) == len(set(tried)) and len(candidates("def sat(:")) == len(candidates(""))


@pytest.mark.parametrize("name", ["chat", "short"])
def test_a_blank_answer_block_is_no_answer(name):
    form = Puzzles().format(name)
    program = "```python\ndef sat(x):\n    return x > 5\n```\n"
    for block, answer in (("```answer\n7\n```", "7"), ("```answer\n \n```", None)):
        assert form.parse_answer(PUZZLE, block) == answer
        assert (form.parse_proposal(PUZZLE, program + block) is None) == (answer is None)
