"""LiveCodeBench's format, both kinds, on problems of our own."""

import json
import subprocess
import sys

import needs
import pytest
from made_up_problems import CONTEST_ROWS, write_jsonl

from azr_population.eval.benchmark.benchmarks import read_benchmark
from azr_population.eval.benchmark.contests import ContestProblem


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
TOTAL = "print(sum(map(int, {}.split())))"
LATER, TOTAL_OF_LINE = "input(); " + TOTAL.format("input()"), TOTAL.format("stdin.readline()")
THREAD = f"import threading\ndef main():\n    {LATER}\n{{}}"
SUMS |= {
    "stdin by name": f"from sys import stdin\nstdin.readline()\n{TOTAL_OF_LINE}",
    "another name": "from sys import stdin as s\ns.readline()\n" + TOTAL.format("s.readline()"),
    "named inside": "def g():\n    from sys import stdin\n    stdin.readline()\n"
    f"    {TOTAL_OF_LINE}\ng()",
    "of the prelude": f"stdin.readline()\n{TOTAL_OF_LINE}",
    "whole": "from sys import stdin\nprint(sum(map(int, stdin.read().split()[1:])))",
    "all lines": "from sys import stdin\n" + TOTAL.format("stdin.readlines()[1]"),
    "its lines": "import sys\n" + TOTAL.format("sys.stdin.readlines()[1]"),
    "iterates": "import sys\n" + TOTAL.format("[line for line in sys.stdin][1]"),
    "input is readline": "import sys\ninput = sys.stdin.readline\n" + LATER,
    "to the end": "import sys\nxs = iter(sys.stdin.readline, '')\nnext(xs)\n"
    + TOTAL.format("' '.join(xs)"),
    "lines till one is empty": "from sys import stdin\nxs = iter(stdin.readline, '')\nnext(xs)\n"
    + TOTAL.format("' '.join(xs)"),
    "till EOFError": "s = []\ntry:\n    while True: s = input().split()\nexcept EOFError: pass\n"
    "print(sum(map(int, s)))",
    "fileinput": "import fileinput\n" + TOTAL.format("list(fileinput.input())[1]"),
    "exits": f"{LATER}\nexit()",
    "SystemExit": f"{LATER}\nraise SystemExit",
    "writes": "import sys\ninput()\nsys.stdout.write(str(sum(map(int, input().split()))))",
    "flushes": f"import sys\n{LATER}\nsys.stdout.flush()",
    "to stderr too": f"import sys\nprint('x', file=sys.stderr)\n{LATER}",
    "with line breaks of Windows": "n = int(input())\r\n" + TOTAL.format("input()") + "\r\n",
    "returns": f"{LATER}\nreturn",
    "imports last": f"{LATER}\nimport math",
    "a thread": THREAD.format("t = threading.Thread(target=main)\nt.start()\nt.join()"),
    "a thread of its own stack": THREAD.format(
        "threading.stack_size(1 << 27)\nt = threading.Thread(target=main)\nt.start()\nt.join()"
    ),
    "a thread that raises": THREAD.format(
        "    1 / 0\nt = threading.Thread(target=main)\nt.start()\nt.join()"
    ),
    "by class": f"class Solution:\n    def go(self):\n        {LATER}\nSolution().go()",
    "bytes out": "import sys\ninput()\n"
    "sys.stdout.buffer.write(str(sum(map(int, input().split()))).encode())",
}
BEYOND_AZR = {"by bytes", "by class", "bytes out"}
"""Right programs that LiveCodeBench's later harness passes and AZR's copy does not."""
NO_SUMS = {
    "wrong": ("print(6)", "wrong"),
    "too much": ("input()\nprint(sum(map(int, input().split())), 1)", "wrong"),
    "two lines": ("input()\nprint(sum(map(int, input().split())))\nprint()\nprint(1)", "wrong"),
    "a word": ("print('six')", "wrong"),
    "no parse": ("n = = 1", "error"),
    "raises": ("raise ValueError", "error"),
    "nothing": ("  ", "no answer"),
    "quits": (f"{LATER}\nquit()", "error"),
    "stdout by name": ("from sys import stdout\ninput()\nstdout.write(input())", "wrong"),
    "iterates by name": ("from sys import stdin\n" + TOTAL.format("list(stdin)[1]"), "error"),
    "the descriptor": ("print(sum(map(int, open(0).read().split()[1:])))", "error"),
    "the device": ("with open('/dev/stdin') as f: " + TOTAL.format("f.read()[2:]"), "error"),
    "past stdin": ("import os\n" + TOTAL.format("os.read(0, 99).decode()"), "error"),
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


AZR_SIDE = """
import json, sys
from multiprocessing import get_context
sys.path.insert(0, sys.argv[1])
from lcb_runner.evaluation.testing_util import run_test
programs, tests = json.load(sys.stdin)
def judge(program, results):
    results.put(run_test({"input_output": json.dumps(tests)}, test=program)[0])
passed = []
for program in programs:
    results = get_context("fork").SimpleQueue()
    child = get_context("fork").Process(target=judge, args=(program, results))
    child.start(); child.join()
    passed.append(all(verdict is True for verdict in results.get()))
print('\\n' + json.dumps(passed))
"""


@pytest.mark.azr
def test_verdicts_are_those_of_azrs_own_harness(problems):
    ways = SUMS | {name: source for name, (source, _) in NO_SUMS.items()}
    tests = problems["own_sum"].read_tests()
    asked = {"inputs": [typed for typed, _ in tests], "outputs": [text for _, text in tests]}
    folder = str(needs.azr_file("evaluation/code_eval/coding/LiveCodeBench"))
    printed = subprocess.run(
        [sys.executable, "-c", AZR_SIDE, folder],
        input=json.dumps([list(ways.values()), asked]),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    theirs = dict(zip(ways, json.loads(printed.splitlines()[-1]), strict=True))
    ours = ContestProblem.judge([(problems["own_sum"], source) for source in ways.values()])
    differ = {name for name, own in zip(ways, ours, strict=True) if own.passed != theirs[name]}
    assert differ == BEYOND_AZR and len(ways) - len(differ) >= 40


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
