"""Programs that self-play must not train on, because the exam asks about them."""

import ast
from collections.abc import Iterable

from azr_population.domains.code.complexity import parse
from azr_population.domains.domain import HeldOut


class HeldOutPrograms(HeldOut):
    """Tells copies and near-copies of an exam's programs, however they are laid out."""

    def __init__(self, programs: Iterable[str]) -> None:
        held_out = list(programs)
        self._texts = {text for program in held_out if (text := canonical(program))}
        self._shapes = {shape for program in held_out if (shape := without_constants(program))}

    def is_copy(self, program: str) -> bool:
        """Whether it is one of them but for white space and comments; such a task is refused."""
        return canonical(program) in self._texts

    def is_near_copy(self, program: str) -> bool:
        """Whether it is one of them but for its constants; such tasks are counted.

        At nano scale programs are short, so that many agree by chance: refusing them would take
        away a part of the grammar.
        """
        return without_constants(program) in self._shapes


def canonical(program: str) -> str | None:
    """The program as the parser prints it; None where it does not parse."""
    tree = parse(program)
    return None if tree is None else _text(tree)


def without_constants(program: str) -> str | None:
    """As `canonical`, with every constant replaced by the same one."""
    tree = parse(program)
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = None
    return _text(tree)


def _text(tree: ast.Module) -> str | None:
    try:
        return ast.unparse(tree)
    except RecursionError:
        return None
