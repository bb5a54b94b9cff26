"""What a benchmark asks: problems of four kinds, each with what its grader needs to know."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Tests = tuple[tuple[str, str], ...]
"""(input, output) of each test of a contest problem."""


@dataclass(frozen=True)
class MathProblem:
    """A question whose answer is a mathematical object."""

    id: str
    question: str
    gold: str
    """The right answer in LaTeX, without `\\boxed` and dollars."""


@dataclass(frozen=True)
class FunctionProblem:
    """A function to be written (HumanEval, MBPP and their + sets).

    Its tests are inputs; what is right on them is what the canonical solution returns.
    """

    id: str
    prompt: str
    """Signature and docstring, or a docstring with examples: the program's beginning."""
    entry_point: str
    """Name of the function."""
    canonical: str
    """A right program, complete."""
    base_inputs: list[Any] = field(default_factory=list)
    """Argument lists of the original benchmark."""
    plus_inputs: list[Any] = field(default_factory=list)
    """Those that the + set adds."""
    atol: float = 0.0
    """How far floats may be off."""
    check: str = ""
    """A program that defines `check(candidate)`, from which `base_inputs` are recorded."""
    dataset: str = ""
    """evalplus's name of the benchmark, by which its special rules go: `humaneval`, `mbpp`."""


@dataclass(frozen=True)
class ContestProblem:
    """A task of a programming contest (LiveCodeBench): reads standard input, or defines a method.

    Tests are (input, output). With a `function`, an input is its arguments, a JSON value a line,
    and the output is a JSON value; without, they are what is typed and what is to be printed.
    """

    id: str
    question: str
    starter_code: str
    function: str
    read_tests: Callable[[], Tests]
    """Reads the tests, which are too large to be kept."""


@dataclass(frozen=True)
class PuzzleProblem:
    """A function `sat`; whatever it returns True for is right (P3)."""

    id: str
    program: str
    """`sat`, complete."""


Problem = MathProblem | FunctionProblem | ContestProblem | PuzzleProblem
