"""Refusing programs by what their text says: module names in imports, kinds of statements.

For callers that bring a list of their own, as AZR's configuration does. It is a matter of taste in
tasks (a hash is a one-way function nobody can invert), not of safety: text can hide anything.
"""

import ast
import re

_STATEMENTS = {
    ast.Assert: "assert",
    ast.Raise: "raise",
    ast.Try: "try",
    ast.ExceptHandler: "except",
}


def screen(source: str, banned: tuple[str, ...], statements: tuple[str, ...]) -> str:
    """What is banned in the source: the first such thing, '' where there is none.

    `banned` are components of dotted module names, e.g. `os`, `random`. A source that does not
    parse is searched for the words themselves.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        for word in banned:
            if re.search(rf"\b{re.escape(word)}\b", source):
                return word
        return ""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            parts = {part for alias in node.names for part in alias.name.split(".")}
            if isinstance(node, ast.ImportFrom) and node.module:
                parts.update(node.module.split("."))
            for word in banned:
                if word in parts:
                    return word
        kind = _STATEMENTS.get(type(node))
        if kind in statements:
            return str(kind)
    return ""
