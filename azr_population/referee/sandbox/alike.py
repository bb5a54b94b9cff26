"""Whether a program that looks plain comes to the same in company as alone.

Two things that its code alone does not show can make a difference:

- memory. What earlier programs left behind, or tore holes into, decides when it runs out. A program
  that runs out is executed again, alone; one that can catch the MemoryError would hide that.
- `typing`. Its objects take attributes and remember what they were made of, so nobody may get hold
  of them: in annotations they are out of a plain program's reach, anywhere else they are not.
"""

import ast
import builtins
from collections.abc import Iterator

from .plain import BUILTINS

_NARROW = frozenset(
    name
    for name in BUILTINS
    if isinstance(error := getattr(builtins, name), type)
    and issubclass(error, BaseException)
    and not issubclass(MemoryError, error)
)
_GENERIC = frozenset(("dict", "frozenset", "list", "set", "tuple", "type"))
_IN_ANNOTATIONS = (
    ast.Attribute, ast.BinOp, ast.BitOr, ast.Constant, ast.List, ast.Load, ast.Name, ast.Subscript,
    ast.Tuple,
)  # fmt: skip


def alike(source: str, imports_typing: bool) -> bool:
    """Whether it comes to the same, as far as these two are concerned."""
    catches = "except" in source or "finally" in source
    if not (catches or imports_typing):
        return True
    tree = ast.parse(source)
    bound = frozenset(_bound(tree))
    if catches and not all(_narrow(node, bound) for node in ast.walk(tree)):
        return False
    return not imports_typing or _annotates_only(tree, bound)


def _bound(tree: ast.AST) -> Iterator[str | None]:
    """The names that a program binds, but for what it imports from `typing`."""
    hints = {
        id(alias)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "typing"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if id(node) in hints or (isinstance(node, ast.alias) and node.name == "typing"):
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.MatchMapping):
            yield node.rest
        else:  # functions, classes, handlers, patterns
            yield getattr(node, "name", None)


def _narrow(node: ast.AST, bound: frozenset[str | None]) -> bool:
    """Whether a node is nothing that catches a MemoryError."""
    if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
        return not node.finalbody  # type: ignore[attr-defined]
    if not isinstance(node, ast.ExceptHandler):
        return True
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return all(
        isinstance(kind, ast.Name) and kind.id in _NARROW and kind.id not in bound for kind in kinds
    )


def _annotates_only(tree: ast.AST, bound: frozenset[str | None]) -> bool:
    """Whether what is imported from `typing` stands in annotations only, and stays there."""
    hints: set[str] = set()
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "typing":
            hints.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            modules.update(a.asname or a.name for a in node.names if a.name == "typing")
    known = hints | modules
    if not known.isdisjoint(bound):
        return False
    allowed: set[int] = set()
    for annotation in _annotations(tree):
        inside = list(ast.walk(annotation))
        if all(isinstance(node, _IN_ANNOTATIONS) and _fits(node, known, bound) for node in inside):
            allowed.update(map(id, inside))
    return all(
        id(node) in allowed
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id in known)
        or (isinstance(node, ast.Attribute) and node.attr in hints)
    )


def _annotations(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            annotation = getattr(node, name, None)
            if isinstance(annotation, ast.AST):
                yield annotation


def _fits(node: ast.AST, known: set[str], bound: frozenset[str | None]) -> bool:
    """Whether a part of an annotation hands nothing of `typing` to what the program has made."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id in known
    if not isinstance(node, ast.Subscript):
        return True
    of = node.value.value if isinstance(node.value, ast.Attribute) else node.value
    return isinstance(of, ast.Name) and (of.id in known or of.id in _GENERIC - bound)
