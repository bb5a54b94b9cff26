"""Outputs of a solution, and when they are right: evalplus's data format and rules.

The rules are those of `unsafe_execute` in evalplus 0.3.1 (evalplus/eval/__init__.py), in its order;
what is special about single problems is taken from evalplus itself.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from azr_population.errors import UserError
from azr_population.evals.benchmarks import FunctionProblem
from azr_population.evals.grading.sandboxed import text_digest
from azr_population.referee.sandbox import literal

_MAX_BYTES = 32 << 20


class MalformedOutput(ValueError):
    """The text from the sandbox is not a record that we write there."""


@dataclass(frozen=True)
class SolutionOutput:
    """One value, as `sandboxed.Line` has it. Its text was written by the solution's side of the
    wall, so it is compared as text, or read as a literal, and never evaluated."""

    kind: str
    text: str

    def same_text(self, other: SolutionOutput) -> bool:
        """Whether both are the same value, by their texts or by the hashes of these."""
        kinds = {self.kind, other.kind}
        if kinds == {"text", "hash"}:
            hashes = {o.text if o.kind == "hash" else text_digest(o.text) for o in (self, other)}
            return len(hashes) == 1
        return len(kinds) == 1 and "opaque" not in kinds and self.text == other.text

    @property
    def value(self) -> Any:
        """The value; `UNKNOWN` if there is only a hash, or it is not a literal."""
        try:
            return literal.parse(self.text) if self.kind == "text" else UNKNOWN
        except literal.NotLiteral:
            return UNKNOWN


UNKNOWN = object()
"""Stands for a value that is not available outside the sandbox; it equals nothing."""


def outputs_and_error(packed: str) -> tuple[list[SolutionOutput], str]:
    """Outputs, and what was raised: the inverse of `sandboxed.record`, for text that a solution may
    have forged. Raises MalformedOutput."""
    try:
        inflater = zlib.decompressobj()
        raw = inflater.decompress(base64.b64decode(packed, validate=True), _MAX_BYTES)
        record = json.loads(raw)
        if inflater.unconsumed_tail or record.keys() != {"lines", "error"}:
            raise ValueError("too long, or not a record")
        outputs = [SolutionOutput(kind, text) for kind, text in record["lines"]]
        if not all(type(part) is str for o in outputs for part in (o.kind, o.text)):
            raise ValueError("not texts")
        return outputs, str(record["error"])
    except (ValueError, TypeError, AttributeError, zlib.error, RecursionError) as error:
        raise MalformedOutput(str(error)) from error


def deserialize_inputs(dataset: str, task: str, inputs: list[Any]) -> list[Any]:
    """Argument lists as evalplus reads them from its files; `dataset` is humaneval or mbpp."""
    if dataset != "mbpp":
        return inputs
    module = evalplus_module("evalplus.data.mbpp")
    deserialized: list[Any] = module.mbpp_deserialize_inputs(task, inputs)
    return deserialized


def first_wrong(
    problem: FunctionProblem,
    inputs: Sequence[Any],
    outputs: Sequence[SolutionOutput],
    expected: Sequence[SolutionOutput],
) -> int | None:
    """Position of the first wrong output; None if all are right."""
    atol = problem.atol
    for position, right in enumerate(expected):
        if position >= len(outputs):
            return position
        # evalplus keeps the tolerance, once it has met a float, for the inputs that follow.
        if atol == 0 and _is_floats(right):
            atol = 1e-6
        if not _is_right(problem, inputs[position], outputs[position], right, atol):
            return position
    return None


def _is_right(
    problem: FunctionProblem,
    arguments: Sequence[Any],
    output: SolutionOutput,
    right: SolutionOutput,
    atol: float,
) -> bool:
    """evalplus counts an exception of these comparisons as wrong. Here one is caught only if the
    output causes it, so that a bug of ours is not a verdict."""
    name, special = problem.entry_point, _special() if problem.dataset else None
    if special and problem.dataset == "humaneval" and name == "find_zero":
        return _is_zero(special, arguments, output.value, atol)
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


def _is_zero(special: ModuleType, coefficients: Sequence[Any], output: Any, atol: float) -> bool:
    """Whether a polynomial is near zero there; the output may be far beyond its floats."""
    if not isinstance(output, (int, float)):
        return False
    try:
        return bool(abs(special._poly(*coefficients, output)) <= atol)
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


@cache
def _special() -> ModuleType:
    return evalplus_module("evalplus.eval._special_oracle")


def evalplus_module(name: str) -> ModuleType:
    """A module of evalplus. Raises UserError if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(
            f"HumanEval+ and MBPP+ are judged by evalplus's rules, and {error.name} is not "
            "installed: pip install 'azr-population[eval]'"
        ) from error
