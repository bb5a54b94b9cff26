"""HumanEval+ and MBPP+ as evalplus has them: prompts, the parser of answers, what is right.

The rules are those of `unsafe_execute` in evalplus 0.3.1 (evalplus/eval/__init__.py), in its order;
what is special about single problems is taken from evalplus itself. Solutions run in the referee's
sandbox, and so do the canonical ones, whose outputs are right.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import accumulate
from types import ModuleType
from typing import Any

import numpy as np

from azr_population.errors import UserError
from azr_population.eval.benchmark import sandbox
from azr_population.eval.benchmark.mathematics import read_within_limits
from azr_population.eval.benchmark.problem import WRONG_NUMBER, EvalVerdict, Problem, Prompt
from azr_population.eval.benchmark.sandbox import UNKNOWN, ProgramRun, SolutionOutput

SECONDS, INPUT_SECONDS = 60.0, 4.0
"""Processor time of a solution for all base or plus inputs, and for one. evalplus takes wall-clock
time: 60 seconds, and for one input 1 or 4 times what the canonical solution took."""
_ENDS = ("\nif __name__", "\ndef main(", "\nprint(")
_PLAIN_ENDS = {
    "humaneval": ("\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert "),
    "mbpp": ('\n"""', "\nassert"),
}


@dataclass(eq=False)
class FunctionProblem(Problem):
    """A function to be written; the canonical solution's outputs are right."""

    id: str
    docstring: str
    """The signature with a docstring, or a text with examples."""
    entry_point: str
    canonical: str
    """A right program, complete."""
    base_inputs: list[Any] = field(default_factory=list)
    """Argument lists of the original benchmark."""
    plus_inputs: list[Any] = field(default_factory=list)
    """The inputs that the + set adds."""
    atol: float = 0.0
    """The absolute tolerance of floats."""
    dataset: str = ""
    """evalplus's name of the benchmark, by which its special rules go: `humaneval`, `mbpp`."""
    expected: list[list[tuple[SolutionOutput, float]]] = field(init=False, default_factory=list)
    """Output and tolerance for each input, of the base and the plus inputs; empty until they are
    computed."""

    @property
    def inputs(self) -> tuple[list[Any], list[Any]]:
        """Base and plus."""
        return self.base_inputs, self.plus_inputs

    @property
    def prompt(self) -> Prompt:
        """Chat with a begun answer; without a chat template, the bare prompt to be continued
        (evalplus/codegen.py)."""
        text = self.docstring.strip()
        return Prompt(
            "Please provide a self-contained Python script that solves the following problem in a "
            f"markdown code block:\n```\n{text}\n```\n",
            answer_begins="Below is a Python script with a self-contained function that solves the "
            "problem and passes corresponding tests:\n```python\n",
            plain=f"{text}\n",
            stops=(*_ENDS, "\n```\n"),
            plain_stops=(*_ENDS, *_PLAIN_ENDS.get(self.dataset, ())),
        )

    def read(self, completion: str) -> str:
        """evalplus's rule: the longest part that parses, of it what the function needs."""
        return _sanitized(completion, self.entry_point)

    @classmethod
    def read_all(cls, completions: Sequence[tuple[FunctionProblem, str]]) -> list[str]:
        # It parses what the model wrote, again and again.
        pairs = [(text, problem.entry_point) for problem, text in completions]
        return [answer or "" for answer in read_within_limits(_sanitized, pairs)]

    @classmethod
    def judge(cls, answers: Sequence[tuple[FunctionProblem, str]]) -> list[EvalVerdict]:
        """Base inputs come first, where most wrong solutions fail; what passes them is run on the
        plus inputs, in another process, as in evalplus. Raises UserError for a problem whose
        canonical solution fails."""
        _run_canonical([p for p in dict.fromkeys(p for p, _ in answers) if not p.expected])

        def tests(number: int, plus: int) -> sandbox.InputSet | None:
            if plus > 1:
                return None
            problem, program = answers[number]
            name, inputs = ("base", "plus")[plus], range(len(problem.expected[plus]))
            return sandbox.InputSet(
                partial(_call, problem, program, plus),
                [f"{name} input {position}" for position in inputs],
                partial(_is_right, problem, plus),
            )

        programs = [program for _, program in answers]
        return sandbox.judge(programs, tests, SECONDS, INPUT_SECONDS)

    @classmethod
    def known_completions(
        cls, problems: Sequence[FunctionProblem]
    ) -> list[tuple[FunctionProblem, str, str]]:
        wrong = f"```python\ndef {{}}(*arguments):\n    return {WRONG_NUMBER}\n```"
        right = "```python\n{}\n```"
        return [(p, right.format(p.canonical), wrong.format(p.entry_point)) for p in problems]


def evalplus_problem(dataset: str, row: dict[str, Any]) -> FunctionProblem:
    """A row of evalplus's files; `dataset` is humaneval or mbpp."""
    base_inputs, plus_inputs = row["base_input"], row["plus_input"]
    if dataset == "mbpp":
        deserialize = _evalplus("evalplus.data.mbpp").mbpp_deserialize_inputs
        base_inputs = deserialize(row["task_id"], base_inputs)
        plus_inputs = deserialize(row["task_id"], plus_inputs)
    return FunctionProblem(
        row["task_id"],
        row["prompt"],
        row["entry_point"],
        row["prompt"] + row["canonical_solution"],
        base_inputs,
        plus_inputs,
        atol=float(row["atol"]),
        dataset=dataset,
    )


def _evalplus(name: str) -> ModuleType:
    """A module of evalplus. Raises UserError if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(
            f"HumanEval+ and MBPP+ are judged by evalplus's rules, and {error.name} is not "
            "installed: pip install 'azr-population[eval]'"
        ) from error


def _sanitized(completion: str, entry_point: str) -> str:
    # No program has these, and Python's parser raises at them what evalplus does not expect.
    completion = re.sub("[\0\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", completion)
    return str(_evalplus("evalplus.sanitize").sanitize(completion, entry_point))


def _call(problem: FunctionProblem, program: str, plus: int) -> str:
    packed = marshal.dumps(problem.inputs[plus])
    return f"call_all({program!r}, {problem.entry_point!r}, {packed!r}, time_part)"


def _run_canonical(problems: Sequence[FunctionProblem]) -> None:
    calls = (_call(p, p.canonical, plus) for p in problems for plus in (0, 1))
    runs = sandbox.run(calls, SECONDS, INPUT_SECONDS)
    for problem, two_runs in zip(problems, zip(runs, runs, strict=True), strict=True):
        problem.expected = [
            _expected(problem, *pair) for pair in zip(problem.inputs, two_runs, strict=True)
        ]


def _expected(
    problem: FunctionProblem, inputs: Sequence[Any], run: ProgramRun
) -> list[tuple[SolutionOutput, float]]:
    if run.detail or len(run.outputs) != len(inputs):
        raise UserError(
            f"{problem.id}: the canonical solution does not run through its tests ({run.reason} "
            f"{run.detail}); the file of the benchmark is damaged, or this Python is not one that "
            "it was made for"
        )
    # evalplus keeps the tolerance, once it has met a float, for the inputs that follow.
    tolerances = accumulate((1e-6 if _is_floats(output) else 0.0 for output in run.outputs), max)
    return [(output, problem.atol or a) for output, a in zip(run.outputs, tolerances, strict=True)]


def _is_right(problem: FunctionProblem, plus: int, position: int, output: SolutionOutput) -> bool:
    """evalplus counts an exception of these comparisons as wrong. Here one is caught only if the
    output causes it, so that a bug of ours is not a verdict."""
    arguments, (right, atol) = problem.inputs[plus][position], problem.expected[plus][position]
    name = problem.entry_point
    special = _evalplus("evalplus.eval._special_oracle") if problem.dataset else None
    if special and problem.dataset == "humaneval" and name == "find_zero":
        return _is_zero(partial(special._poly, *arguments), output.value, atol)
    exact = output.same_text(right) or _both(output, right, lambda a, b: bool(a == b))
    if special and problem.dataset == "mbpp":
        if name == "are_equivalent":
            exact = True
        elif name == "sum_div":
            exact = exact or output.value == 0
        elif name == "surface_Area":
            exact = exact or _near(output.value, special._surface_Area(*arguments), atol)
        elif name == "digit_distance_nums":
            exact = exact or output.value == special._digit_distance_nums(*arguments)
        elif name in special.MBPP_OUTPUT_SET_EQ_TASKS:
            exact = exact or _both(output, right, _same_set)
        elif name in special.MBPP_OUTPUT_NOT_NONE_TASKS:
            is_there = right.text != "None"
            text = output.text if output.kind == "text" else ""
            return is_there == (text == "True" if text in ("True", "False") else text != "None")
    if exact or atol == 0:
        return exact
    return _both(output, right, lambda a, b: type(a) is type(b) and _near(a, b, atol, 1e-07))


def _both(output: SolutionOutput, right: SolutionOutput, rule: Callable[[Any, Any], bool]) -> bool:
    """Whether the rule holds for the two values; not where one of them is unknown."""
    mine, theirs = output.value, right.value
    return mine is not UNKNOWN and theirs is not UNKNOWN and rule(mine, theirs)


def _same_set(output: Any, right: Any) -> bool:
    try:
        mine = set(output)
    except TypeError:  # no collection, or of what cannot be in a set
        return False
    return mine == set(right)


def _near(output: Any, right: Any, atol: float, rtol: float = 0.0) -> bool:
    """`np.allclose`, where the shapes agree too: it would broadcast."""
    try:
        same_shape = np.shape(output) == np.shape(right)
        return same_shape and bool(np.allclose(output, right, rtol=rtol, atol=atol))
    except (TypeError, ValueError, OverflowError):  # no numbers, ragged, beyond all floats
        return False


def _is_zero(polynomial: Callable[[Any], Any], output: Any, atol: float) -> bool:
    """Whether a polynomial is near zero there; the output may be far beyond its floats."""
    try:
        return isinstance(output, (int, float)) and bool(abs(polynomial(output)) <= atol)
    except OverflowError:
        return False


def _is_floats(output: SolutionOutput) -> bool:
    """evalplus's `is_floats`: a float, or a list or tuple of nothing else."""
    if output.kind != "text" or output.text[:1] in "'\"{":
        return False
    value = output.value
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)
