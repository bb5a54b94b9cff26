"""evalplus's data format and its rules for when an output is right.

The rules are those of `unsafe_execute` in evalplus 0.3.1 (evalplus/eval/__init__.py), in its order;
what is special about single problems is taken from evalplus itself.
"""

from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from azr_population.errors import UserError
from azr_population.evals.benchmarks import FunctionProblem
from azr_population.evals.grading.outputs import Output
from azr_population.referee.sandbox import literal


def deserialize_inputs(dataset: str, task: str, inputs: list[Any]) -> list[Any]:
    """Argument lists as evalplus reads them from its files; `dataset` is humaneval or mbpp."""
    if dataset != "mbpp":
        return inputs
    module = evalplus_module("evalplus.data.mbpp", "mbpp_deserialize_inputs")
    deserialized: list[Any] = module.mbpp_deserialize_inputs(task, inputs)
    return deserialized


def first_wrong(
    problem: FunctionProblem,
    inputs: Sequence[Any],
    outputs: Sequence[Output],
    expected: Sequence[Output],
    start: int = 0,
) -> int | None:
    """Position of the first output from `start` on that is not right; None where there is none."""
    atol = problem.atol
    for position, right in enumerate(expected):
        if position >= len(outputs):
            return position
        # evalplus keeps the tolerance, once it has met a float, for the inputs that follow.
        if atol == 0 and _is_floats(right):
            atol = 1e-6
        if position < start:
            continue
        if not _is_right(problem, inputs[position], outputs[position], right, atol):
            return position
    return None


def _is_right(
    problem: FunctionProblem, arguments: Sequence[Any], output: Output, right: Output, atol: float
) -> bool:
    """evalplus counts an exception of these comparisons as wrong. Here none is caught but where the
    output is the reason, so that a fault of ours is a fault."""
    name, special = problem.entry_point, _special() if problem.dataset else None
    if special and problem.dataset == "humaneval" and name == "find_zero":
        return _is_zero(special, arguments, _value(output), atol)
    exact = output.same_text(right) or _both(output, right, lambda a, b: bool(a == b))
    if special and problem.dataset == "mbpp":
        if name == "are_equivalent":
            exact = True
        elif name == "sum_div":
            exact = exact or _value(output) == 0
        elif name == "surface_Area":
            exact = exact or _near(_value(output), special._surface_Area(*arguments), atol)
        elif name == "digit_distance_nums":
            exact = exact or _value(output) == special._digit_distance_nums(*arguments)
        elif name in special.MBPP_OUTPUT_SET_EQ_TASKS:
            exact = exact or _both(output, right, _same_set)
        elif name in special.MBPP_OUTPUT_NOT_NONE_TASKS:
            is_there = right.text != "None"
            told = output.text if output.kind == "text" else ""
            return is_there == (told != "None" if told not in _BOOLS else told == "True")
    if exact or atol == 0:
        return exact
    return _both(output, right, lambda a, b: type(a) is type(b) and _close(a, b, atol))


_BOOLS = ("True", "False")
_UNTOLD = object()
"""In the place of a value that is not known outside the sandbox; it equals nothing."""


def _value(output: Output) -> Any:
    try:
        return output.value
    except literal.NotLiteral:
        return _UNTOLD


def _both(output: Output, right: Output, rule: Callable[[Any, Any], bool]) -> bool:
    """Whether the rule holds for the two values; not where one of them is untold."""
    mine, theirs = _value(output), _value(right)
    return mine is not _UNTOLD and theirs is not _UNTOLD and rule(mine, theirs)


def _same_set(output: Any, right: Any) -> bool:
    try:
        mine = set(output)
    except TypeError:  # no collection, or of what cannot be in a set
        return False
    return mine == set(right)


def _close(output: Any, right: Any, atol: float) -> bool:
    """`np.allclose` as evalplus calls it, where the shapes agree too: it would broadcast."""
    if isinstance(right, (list, tuple)):
        return (
            isinstance(output, (list, tuple))
            and len(output) == len(right)
            and all(_close(one, other, atol) for one, other in zip(output, right, strict=True))
        )
    return _near(output, right, atol + 1e-07 * abs(right)) if _is_number(right) else False


def _near(output: Any, right: Any, within: float) -> bool:
    if not _is_number(output):
        return False
    try:
        return bool(output == right or abs(output - right) <= within)
    except OverflowError:  # a whole number beyond all floats
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex))


def _is_zero(special: ModuleType, coefficients: Sequence[Any], output: Any, atol: float) -> bool:
    """Whether a polynomial is near zero there; the output may be far beyond its floats."""
    if not isinstance(output, (int, float)):
        return False
    try:
        return bool(abs(special._poly(*coefficients, output)) <= atol)
    except OverflowError:
        return False


def _is_floats(output: Output) -> bool:
    """evalplus's `is_floats`: a float, or a list or tuple of nothing else."""
    if output.kind != "text" or output.text[:1] in "'\"{":
        return False
    value = _value(output)
    if isinstance(value, (list, tuple)) and value:
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)


@cache
def _special() -> ModuleType:
    return evalplus_module(
        "evalplus.eval._special_oracle",
        "MBPP_OUTPUT_SET_EQ_TASKS",
        "MBPP_OUTPUT_NOT_NONE_TASKS",
        "_digit_distance_nums",
        "_poly",
        "_surface_Area",
    )


def evalplus_module(name: str, *wanted: str) -> ModuleType:
    """A module of evalplus's that has these names; raises UserError where there is none."""
    from importlib import import_module

    needed = "HumanEval+ and MBPP+ are judged by evalplus's rules"
    try:
        module = import_module(name)
    except ImportError as error:
        raise UserError(
            f"{needed}, and it cannot be imported ({error}): pip install 'evalplus>=0.3.1'"
        ) from error
    lacking = [one for one in wanted if not hasattr(module, one)]
    if lacking:
        raise UserError(
            f"{needed}, and the installed version has no {lacking[0]}: "
            "pip install 'evalplus>=0.3.1'"
        )
    return module
