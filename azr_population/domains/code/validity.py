"""The rules by which `code` refuses guessable answers, by name.

The referee decides first: the program runs, ends, is deterministic, and its outputs are literals.
These rules then examine source text and literals; they run nothing.
"""

import ast
from collections.abc import Callable, Collection

from azr_population.domains.code.source import (
    NOT_FINITE,
    arguments,
    is_finite,
    literal,
    read_program,
)
from azr_population.domains.code.task_types import ParsedProposal, Task, TaskType

MIN_CODE_F_INPUTS = 4
"""Different inputs that a code_f task needs: two to show and two to hide."""


def _boolean(proposal: ParsedProposal, outputs: tuple[str, ...]) -> bool:
    """True, False or None: a coin flip solves half of these."""
    return any(output in ("True", "False", "None") for output in outputs)


def _constant(proposal: ParsedProposal, outputs: tuple[str, ...]) -> bool:
    """The answer does not depend on the input: no parameter is read, or all outputs are equal.

    With a single input only the text is examined; a program that reads its parameter without effect
    passes.
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


REFUSALS: dict[str, Callable[[ParsedProposal, tuple[str, ...]], bool]] = {
    "boolean": _boolean,
    "constant": _constant,
    "identity": _identity,
}


def refuse_before(proposal: ParsedProposal, max_program_chars: int) -> str:
    """A reason to refuse a proposal unexecuted; '' for none."""
    if len(proposal.program) > max_program_chars:
        return "program_too_long"
    if proposal.type == TaskType.CODE_F and len(set(proposal.inputs)) < MIN_CODE_F_INPUTS:
        return "too_few_inputs"
    if proposal.type == TaskType.CODE_I and not all(map(is_finite, proposal.inputs)):
        return NOT_FINITE
    return ""


def accept(
    proposal: ParsedProposal,
    outputs: tuple[str, ...],
    refuse: Collection[str],
    max_output_chars: int,
) -> Task | str:
    """The task, or the name of the rule that refuses it.

    `outputs` are what the referee saw, one literal per input.
    """
    if any(len(output) > max_output_chars for output in outputs):
        return "output_too_long"
    for name in refuse:
        if REFUSALS[name](proposal, outputs):
            return name
    return Task(**vars(proposal), outputs=outputs)


def reads_a_parameter(program: str) -> bool:
    """Whether `f` reads any of its parameters."""
    tree = read_program(program).tree
    if tree is None:
        return False
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "f"]
    if not functions:
        return False
    entry = functions[-1]
    arguments = entry.args
    names = {a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs}
    names.update(a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None)
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        for statement in entry.body
        for node in ast.walk(statement)
    )
