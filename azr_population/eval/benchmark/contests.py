"""LiveCodeBench: contest problems, AZR's prompt, and its rules in the referee's sandbox.

The rules are those of `testing_util.py` in LiveCodeBench as AZR ships it: printed lines are
compared without blanks around them, as texts or as decimal numbers; a method's value by `==`.
"""

import base64
import io
import json
import pickle
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Any

from azr_population.errors import UserError
from azr_population.eval.benchmark import sandbox
from azr_population.eval.benchmark.mathematics import THINK
from azr_population.eval.benchmark.problem import EvalVerdict, Problem, Prompt
from azr_population.eval.benchmark.sandbox import UNKNOWN, SolutionOutput
from azr_population.eval.benchmark.sandboxed import encode, stripped_lines
from azr_population.files import inflate

SECONDS = 6.0
"""CPU seconds for one test; LiveCodeBench takes wall-clock time."""
_TOGETHER = 8
"""Tests that run one after the other in one process; the first, where most fail, runs alone."""
_LONGEST_TESTS = 1 << 28
"""Bytes of a problem's private tests, unpacked."""
Tests = tuple[tuple[str, str], ...]
"""(input, output) of each test."""
_TASK = (
    "# Task: You will be given a question (problem specification) and will generate a correct "
    "Python program that matches the specification and passes all tests. Your final answer should "
    "be wrapped in ```python``` tags."
)
_STARTER = (
    "You will use the following starter code to write the solution to the problem and enclose your "
    "code within delimiters.\n```python\n{}\n```\n\n"
)
_SCRIPT = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly "
    "test on the sample inputs). Enclose your code within delimiters as follows. Ensure that when "
    "the python program runs, it reads the inputs, runs the algorithm and writes output to STDOUT."
    "\n```python\n# YOUR CODE HERE\n```\n\n"
)


@dataclass(frozen=True)
class ContestProblem(Problem):
    """A contest's task. With a `function`, a test's input is its arguments, a JSON value a line,
    and the output a JSON value; without, they are standard input and output."""

    id: str
    question: str
    starter_code: str
    function: str
    read_tests: Callable[[], Tests]
    """Reads the tests, which are too large to stay in memory."""

    @property
    def prompt(self) -> Prompt:
        """AZR's (LiveCodeBench/lcb_runner/prompts/code_generation.py): plain text that begins to
        think."""
        starter = _STARTER.format(self.starter_code) if self.starter_code else _SCRIPT
        question = f"Question: {self.question}\n\n{starter}"
        return Prompt(f"{THINK}User: \n{_TASK}\n\n{question}Assistant: <think>", raw=True)

    def read(self, completion: str) -> str:
        """LiveCodeBench's rule for AZR: the last fenced python block of the <answer>; or all."""
        answer = completion.split("<answer>")[-1].split("</answer>")[0].strip()
        blocks = re.findall(r"```python\n(.*?)```", answer, re.DOTALL)
        return str(blocks[-1]) if blocks else answer

    @classmethod
    def judge(cls, answers: Sequence[tuple["ContestProblem", str]]) -> list[EvalVerdict]:
        """The first test runs alone, the others `_TOGETHER` in a process."""
        all_tests = {problem.id: problem.read_tests() for problem, _ in answers}

        def tests(number: int, stage: int) -> sandbox.InputSet | None:
            problem, program = answers[number]
            start, stop = max(0, 1 + (stage - 1) * _TOGETHER), 1 + stage * _TOGETHER
            part = all_tests[problem.id][start:stop]
            if not part:
                return None
            return sandbox.InputSet(
                partial(_call, problem, program, part),
                [f"test {start + position}:" for position in range(len(part))],
                partial(_is_right, problem, part),
            )

        programs = [program for _, program in answers]
        return sandbox.judge(programs, tests, SECONDS * _TOGETHER, SECONDS)

    @classmethod
    def known_completions(
        cls, problems: Sequence["ContestProblem"]
    ) -> list[tuple["ContestProblem", str, str]]:
        """Completions for a problem of ours, because LiveCodeBench publishes no solutions."""
        sums = ContestProblem("self-test", "", "", "", lambda: (("2 3\n", "5\n"), ("0 7\n", "7\n")))
        text = "```python\na, b = map(int, input().split())\nprint(a {} b)\n```"
        return [(sums, text.format("+"), text.format("-"))]


def _call(problem: ContestProblem, program: str, tests: Tests) -> str:
    typed = [input for input, _ in tests]
    return f"run_tests({program!r}, {problem.function!r}, {typed!r}, time_part)"


def _is_right(problem: ContestProblem, tests: Tests, test: int, output: SolutionOutput) -> bool:
    """Whether a method returned that JSON value, or a script printed those lines."""
    expected = tests[test][1]
    right = json.loads(expected) if problem.function else stripped_lines(expected)
    value = output.value
    if output.same_text(SolutionOutput(*encode(right))):
        return True
    if problem.function or not isinstance(value, str):
        return value is not UNKNOWN and bool(value == right)
    printed, wanted = value.split("\n"), right.split("\n")
    return len(printed) == len(wanted) and all(map(_same_line, printed, wanted))


def _same_line(printed: str, expected: str) -> bool:
    if printed == expected:
        return True
    try:
        return list(map(Decimal, printed.split())) == list(map(Decimal, expected.split()))
    except InvalidOperation:
        return False


def livecodebench_problem(row: dict[str, Any]) -> ContestProblem:
    """A row of LiveCodeBench's files."""
    function = json.loads(row["metadata"]).get("func_name") or ""
    tests = partial(_read_tests, row["_path"], row["_offset"])
    about = row["question_id"], row["question_content"], row["starter_code"]
    return ContestProblem(*about, function, tests)


def _read_tests(path: Path, offset: int) -> Tests:
    """Public and private tests of the row that begins there: files of 0.1 to 1.2 GB are read again
    when they are needed."""
    with path.open("rb") as file:
        file.seek(offset)
        row = json.loads(file.readline())
    try:
        cases = json.loads(row["public_test_cases"]) + _private(row["private_test_cases"])
        if not cases:
            raise ValueError("no tests")
        return tuple((case["input"], case["output"]) for case in cases)
    except (
        ValueError, LookupError, TypeError, EOFError, RecursionError, pickle.UnpicklingError
    ) as error:  # fmt: skip
        raise UserError(f"{path}: the tests of {row.get('question_id')} are damaged") from error


def _private(text: str) -> list[dict[str, str]]:
    """Plain JSON, or JSON that was pickled, compressed and written in base 64."""
    try:
        return list(json.loads(text))
    except ValueError:
        pickled = inflate(base64.b64decode(text), _LONGEST_TESTS)
        return list(json.loads(_OnlyText(io.BytesIO(pickled)).load()))


class _OnlyText(pickle.Unpickler):
    """Unpickles texts: a pickle that asks for anything else could run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise ValueError(f"a pickle that asks for {module}.{name}")
