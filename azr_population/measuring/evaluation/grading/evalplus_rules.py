"""evalplus's data format and its rules for when an output is right.

The rules are those of `unsafe_execute` in evalplus 0.3.1 (evalplus/eval/__init__.py), in its order;
what is special about single problems is taken from evalplus itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

from azr_population.errors import UserError
from azr_population.measuring.evaluation.benchmark import Row
from azr_population.measuring.evaluation.grading.outputs import Output
from azr_population.measuring.evaluation.problem import FunctionProblem
from azr_population.referee.sandbox import literal

EVALPLUS_RIGHT = "returns what the canonical solution returns, on base and plus inputs (evalplus)"


def function_problem(row: Row, dataset: str) -> FunctionProblem:
    """A row of evalplus's files as a problem. `dataset`: humaneval or mbpp."""
    task, inputs = row["task_id"], [row["base_input"], row["plus_input"]]
    if dataset == "mbpp":
        inputs = [_mbpp().mbpp_deserialize_inputs(task, group) for group in inputs]
    return FunctionProblem(
        id=task,
        prompt=row["prompt"],
        entry_point=row["entry_point"],
        canonical=row["prompt"] + row["canonical_solution"],
        base_inputs=inputs[0],
        plus_inputs=inputs[1],
        atol=float(row["atol"]),
        dataset=dataset,
    )


def first_wrong(
    problem: FunctionProblem,
    inputs: Sequence[Any],
    outputs: Sequence[Output],
    expected: Sequence[Output],
) -> int | None:
    """Position of the first output that is not right; None where all inputs have a right one."""
    atol = problem.atol
    for position, right in enumerate(expected):
        if position >= len(outputs):
            return position
        # evalplus keeps the tolerance, once it has met a float, for the inputs that follow.
        if atol == 0 and _is_floats(right):
            atol = 1e-6
        try:
            if not _is_right(problem, inputs[position], outputs[position], right, atol):
                return position
        except Exception:
            return position
    return None


def _is_right(
    problem: FunctionProblem, arguments: Sequence[Any], output: Output, right: Output, atol: float
) -> bool:
    name, exact = problem.entry_point, _equal(output, right)
    if problem.dataset == "mbpp":
        special = _special()
        if name == "are_equivalent":
            exact = True
        elif name == "sum_div":
            exact = exact or output.value == 0
        elif name == "surface_Area":
            exact = exact or abs(output.value - special._surface_Area(*arguments)) <= atol
        elif name == "digit_distance_nums":
            exact = exact or output.value == special._digit_distance_nums(*arguments)
        elif name in special.MBPP_OUTPUT_SET_EQ_TASKS:
            exact = set(output.value) == set(right.value)
        elif name in special.MBPP_OUTPUT_NOT_NONE_TASKS:
            is_there = right.type != "NoneType"
            if output.type == "bool":
                exact = output.value == is_there
            else:
                exact = (output.type != "NoneType") == is_there
            return exact
    if problem.dataset == "humaneval" and name == "find_zero":
        return bool(abs(_special()._poly(*arguments, output.value)) <= atol)
    if exact or atol == 0:
        return bool(exact)
    if output.type != right.type:
        return False
    if isinstance(right.value, (list, tuple)) and len(output.value) != len(right.value):
        return False
    import numpy as np

    return bool(np.allclose(output.value, right.value, rtol=1e-07, atol=atol))


def _equal(output: Output, right: Output) -> bool:
    if output.same_text(right):
        return True
    try:
        return bool(output.value == right.value)
    except literal.NotLiteral:
        return False


def _is_floats(output: Output) -> bool:
    """evalplus's `is_floats`: a float, or a list or tuple of nothing else."""
    if output.kind != "text" or output.text[:1] in "'\"{":
        return False
    try:
        value = output.value
    except literal.NotLiteral:
        return False
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)


@cache
def _mbpp() -> ModuleType:
    return _evalplus("evalplus.data.mbpp")


@cache
def _special() -> ModuleType:
    return _evalplus("evalplus.eval._special_oracle")


def _evalplus(name: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(
            f"HumanEval+ and MBPP+ are judged by evalplus's rules, and it cannot be imported "
            f"({error}): pip install evalplus"
        ) from error
