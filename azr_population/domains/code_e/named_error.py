"""A program whose output is the name of the exception that it raises."""

import ast
from collections.abc import Sequence

from azr_population.domains.code.source import read_program

_MAX_NAME_CHARS = 200
NO_ERROR = "NoError"
"""AZR's name for none."""

_ENTRY = """\
def _entry(source):
    space, failed = {{}}, None
    try:
        exec(source, space)
    except BaseException as error:
        failed = error

    def f(*args, **named):
        try:
            if failed is not None:
                raise failed
            eval("repr(f(*args, **named))", space, {{"args": args, "named": named}})
        except MemoryError:
            raise
        except BaseException as error:
            kind = type(error)
            module = getattr(kind, "__module__", "builtins")
            if module.startswith("sandbox."):
                raise
            where = "" if module in ("builtins", "__main__") else module + "."
            return where + kind.__qualname__
        return {none!r}

    return {{**space, "f": f}}


globals().update(_entry({source!r}))
"""
"""The name is AZR's: the last line of a traceback up to the colon, qualified. An error of the
value's `repr` counts. The program runs in its own namespace, so that a recursive `f` does not call
this one; the input may use its other names. Running out of memory and what the sandbox forbids are
not errors of the program."""


def naming(program: str, imports: Sequence[str] = ()) -> str:
    """A program like this one that returns the name of what it raises, or `NoError`; one that does
    not parse as it is."""
    tree = read_program(program)
    if tree is None:
        return program
    lines = program.split("\n")
    futures = [
        node.end_lineno or 0
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    at = max(futures, default=0)  # nothing may stand before a `from __future__`
    source = "\n".join([*lines[:at], *imports, *lines[at:]])
    return _ENTRY.format(source=source, none=NO_ERROR)


def same_name(answer: str, name: str) -> bool:
    """AZR's rule: the first word, up to a colon, in any case (`reward_managers.py`)."""
    return answer.split(" ")[0].split(":")[0].lower() == name.lower()


def exception_name(output: str) -> str:
    """The qualified name that `naming` gave out; '' where the program got at our entry."""
    name = ast.literal_eval(output)
    if not isinstance(name, str) or len(name) > _MAX_NAME_CHARS:
        return ""
    parts = name.split(".")
    return name if all(part == "<locals>" or part.isidentifier() for part in parts) else ""
