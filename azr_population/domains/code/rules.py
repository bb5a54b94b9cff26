"""Which executed programs are code tasks: rules that refuse guessable ones."""

import ast
from collections.abc import Callable

from azr_population.config.schema import TaskConfig
from azr_population.domains.code import chains
from azr_population.domains.code.source import (
    NOT_FINITE,
    arguments,
    distinct,
    is_finite,
    literal,
    read_program,
)
from azr_population.domains.code.task_types import TaskType
from azr_population.domains.task import ParsedProposal, Task

_, _I, _F = TaskType
MIN_CODE_F_INPUTS = 4
"""Different inputs that a code_f task needs: two to show and two to hide."""


def _boolean(proposal: ParsedProposal, outputs: tuple[str, ...]) -> bool:
    """True, False or None: a coin flip solves half of these."""
    return any(output in ("True", "False", "None") for output in outputs)


def _constant(proposal: ParsedProposal, outputs: tuple[str, ...]) -> bool:
    """The answer does not depend on the input: no parameter is read, or all outputs are equal.

    With a single input only the text is examined; a program that reads its parameter without effect
    passes, and so does an `f` that is not a top-level `def`.
    """
    if len(outputs) > 1:
        return len(set(outputs)) == 1
    return not reads_a_parameter(proposal.program)


def _identity(proposal: ParsedProposal, outputs: tuple[str, ...]) -> bool:
    """Every output is among its arguments."""
    return all(
        output in map(literal, arguments(source))
        for source, output in zip(proposal.inputs, outputs, strict=True)
    )


def _no_chain(proposal: ParsedProposal, outputs: tuple[str, ...]) -> bool:
    """Not of the world of `chains.py`, where only the number of statements makes a task hard."""
    digits = map(chains.read_digits, proposal.inputs)
    return chains.read(proposal.program) is None or None in digits


REFUSALS: dict[str, Callable[[ParsedProposal, tuple[str, ...]], bool]] = {
    "boolean": _boolean,
    "constant": _constant,
    "identity": _identity,
    "no_chain": _no_chain,
}
"""The rules by name. They examine source text and the literals that the referee saw, and run
nothing."""
USUAL = ("boolean", "constant", "identity")
"""Rules that refuse guessable answers."""


def reason_to_refuse(proposal: ParsedProposal, rules: TaskConfig) -> str:
    """A reason to refuse a proposal unexecuted; '' for none."""
    if len(proposal.program) > rules.max_program_chars:
        return "program_too_long"
    if proposal.type == _F and len(distinct(proposal.inputs)) < MIN_CODE_F_INPUTS:
        return "too_few_inputs"
    if proposal.type == _I and not all(map(is_finite, proposal.inputs)):
        return NOT_FINITE
    return ""


def task_or_reason(
    proposal: ParsedProposal, outputs: tuple[str, ...], rules: TaskConfig
) -> Task | str:
    """The task of a proposal with these outputs, or the name of the rule that refuses it."""
    if any(len(output) > rules.max_output_chars for output in outputs):
        return "output_too_long"
    for name in USUAL if rules.reject is None else rules.reject:
        if REFUSALS[name](proposal, outputs):
            return name
    return Task(**vars(proposal), outputs=outputs)


def reads_a_parameter(program: str) -> bool:
    """Whether `f` reads any of its parameters; True where it is not a top-level `def`."""
    tree = read_program(program)
    body = tree.body if tree else []
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == "f"]
    if not functions:
        return True
    entry = functions[-1]
    names = {node.arg for node in ast.iter_child_nodes(entry.args) if isinstance(node, ast.arg)}
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        for statement in entry.body
        for node in ast.walk(statement)
    )
