"""LiveCodeBench's format, both kinds, on problems of our own."""

import pytest
from made_up_problems import CONTEST_ROWS, write_jsonl

from azr_population.benchmark.benchmarks import read_benchmark
from azr_population.benchmark.contests import ContestProblem


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_jsonl(folder / "livecodebench/test.jsonl", CONTEST_ROWS)
    return {
        problem.id: problem for problem in read_benchmark("livecodebench", str(folder)).problems
    }


SUMS = {
    "right": "n = int(input())\nprint(sum(map(int, input().split())))",
    "by sys": "import sys\ndata = sys.stdin.read().split()\nprint(sum(int(x) for x in data[1:]))",
    "by bytes": "import sys\nd = sys.stdin.buffer.read().split()\nprint(sum(map(int, d[1:])))",
    "by lines": "import sys\ninput()\nfor line in sys.stdin: print(sum(map(int, line.split())))",
    "guarded": "def main():\n    input()\n    print(sum(map(int, input().split())))\n\n"
    "if __name__ == '__main__':\n    main()",
    "a decimal": "input()\nprint(float(sum(map(int, input().split()))), ' ')",
    "leaves": "import sys\ninput()\nprint(sum(map(int, input().split())))\nsys.exit(0)",
    "names of the prelude": "input()\nprint(reduce(add, map(int, input().split())))",
    "recurses": "input()\nxs = list(map(int, input().split()))\n"
    "def go(i):\n    return 0 if i == len(xs) else xs[i] + go(i + 1)\nprint(go(0))",
}
NO_SUMS = {
    "wrong": ("print(6)", "wrong"),
    "too much": ("input()\nprint(sum(map(int, input().split())), 1)", "wrong"),
    "two lines": ("input()\nprint(sum(map(int, input().split())))\nprint()\nprint(1)", "wrong"),
    "a word": ("print('six')", "wrong"),
    "no parse": ("n = = 1", "error"),
    "raises": ("raise ValueError", "error"),
    "nothing": ("  ", "no answer"),
    "late": ("n = int(input())\nif n == 2: 1 / 0\nprint(6)", "error"),
}


def test_standard_input(problems):
    asked = [(problems["own_sum"], source) for source in SUMS.values()]
    verdicts = ContestProblem.judge(asked)
    assert {name: v.reason for name, v in zip(SUMS, verdicts, strict=True)} == dict.fromkeys(
        SUMS, "passed"
    )


def test_what_is_wrong_and_where(problems):
    verdicts = ContestProblem.judge(
        [(problems["own_sum"], source) for source, _ in NO_SUMS.values()]
    )
    assert [v.reason for v in verdicts] == [reason for _, reason in NO_SUMS.values()]
    assert verdicts[-1].detail.startswith("test 1: ZeroDivisionError")


def test_methods(problems):
    head = "class Solution:\n    def pairs(self, nums: List[int], target: int):\n        "
    right = head + "return sorted([a, b] for a, b in combinations(nums, 2) if a + b == target)"
    pairs = head + "return tuple([a, b] for a, b in combinations(nums, 2) if a + b == target)"
    inner = head + "return [(a, b) for a, b in combinations(nums, 2) if a + b == target]"
    program = "def pairs(nums, target):\n    return [[1, 3]] if nums else []"
    no_method = "class Solution:\n    pass"
    verdicts = ContestProblem.judge(
        [(problems["own_pairs"], source) for source in (right, pairs, inner, program, no_method)]
    )
    # A tuple counts as a list, but not one inside, as in LiveCodeBench.
    assert [v.reason for v in verdicts] == ["passed", "passed", "wrong", "passed", "error"]


def test_long_outputs_are_compared_by_their_lines():
    lines = "\n".join(str(i * 7919 % 1_000_003) for i in range(60_000))
    asked = ContestProblem("long", "q", "", "", lambda: (("60000\n", lines + "\n"),))
    source = "n = int(input())\nprint(*(i * 7919 % 1_000_003 for i in range(n{})), sep='\\n')"
    right, wrong = ContestProblem.judge(
        [(asked, source.format("")), (asked, source.format(" - 1"))]
    )
    assert (right.reason, wrong.reason) == ("passed", "wrong")


@pytest.mark.slow
def test_an_endless_program_costs_one_limit(problems):
    verdicts = ContestProblem.judge([(problems["own_sum"], "while True: pass")])
    assert [v.reason for v in verdicts] == ["timeout"]
