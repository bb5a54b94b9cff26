"""Compiles the program of a job and reads its arguments."""

import ast
import marshal
from types import CodeType
from typing import Any, NamedTuple

from . import literal, wire

CAPTURE = "(arguments)"  # not a valid name, so that no program can use it


class Compiled(NamedTuple):
    """A compiled program or, if the status is not OK, the reason why not."""

    status: int
    text: str = ""
    code: CodeType | None = None


class Arguments(NamedTuple):
    """A call's arguments or, if the status is not OK, the reason why not.

    `code` is evaluated in the program's namespace and calls CAPTURE, which returns its arguments;
    for a script it is the last expression. `values` are marshalled, so that each execution gets
    fresh ones.
    """

    status: int
    text: str = ""
    code: CodeType | None = None
    values: bytes = b""


def compiled(work: wire.SandboxWork, banned_names: frozenset[str]) -> Compiled:
    """Compiles a work's program."""
    source = "\n".join((*work.imports, work.source)) if work.imports else work.source
    try:
        code = compile(source, "<program>", "exec", dont_inherit=True)
    except MemoryError:
        return Compiled(wire.MEMORY)
    except Exception as error:  # SyntaxError, ValueError (null bytes), RecursionError, ...
        return Compiled(wire.SYNTAX_ERROR, describe(error))
    if banned := banned_names & names(code):
        return Compiled(wire.BANNED, ", ".join(sorted(banned)))
    return Compiled(wire.OK, source, code)


def names(code: CodeType) -> frozenset[str]:
    """The names in a program: attributes, globals, modules."""
    codes = [code]
    for inner in codes:  # grows while it is gone through: code may be nested deeply
        codes += [constant for constant in inner.co_consts if type(constant) is CodeType]
    return frozenset().union(*(inner.co_names for inner in codes))


def arguments(call: wire.Call, banned_names: frozenset[str]) -> Arguments:
    """Reads a call's text by its kind."""
    if call.kind == wire.SCRIPT:
        return _last_expression(call.arguments)
    try:
        if call.kind != wire.ARGUMENTS:
            values = literal.parse_arguments(call.arguments)
            if "{" in call.arguments:  # a set has one canonical text, however it was written
                values = literal.parse_arguments(literal.write_arguments(*values))
            return Arguments(wire.OK, values=marshal.dumps(values))  # type: ignore[arg-type]
    except literal.NotLiteral as error:
        if call.kind == wire.LITERAL:
            large = isinstance(error, literal.TooLarge)
            return Arguments(wire.TOO_LARGE if large else wire.NOT_LITERAL, str(error))
    try:
        tree = ast.parse(f"f({call.arguments}\n)", "<input>", "eval")
        body = tree.body
        if not (type(body) is ast.Call and type(body.func) is ast.Name and body.func.id == "f"):
            return Arguments(wire.BAD_INPUT, "not the arguments of one call")
        body.func.id = CAPTURE
        code = compile(tree, "<input>", "eval", dont_inherit=True)
    except Exception as error:
        return Arguments(wire.BAD_INPUT, describe(error))
    if not banned_names.isdisjoint(names(code)):
        return Arguments(wire.BAD_INPUT, "a banned name")
    return Arguments(wire.OK, code=code)


def evaluated(code: CodeType, namespace: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments to which an expression evaluates in a program's namespace."""
    # Not among its globals, where the program could see it.
    arguments: tuple[tuple[Any, ...], dict[str, Any]] = eval(code, namespace, {CAPTURE: _captured})
    return arguments


def _captured(*positional: Any, **named: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return positional, named


def describe(error: BaseException) -> str:
    """`ZeroDivisionError: division by zero`, bounded; the message is the program's text."""
    try:
        name = str(_type_name(type(error)))[:100]
        message = str(error)[:200]
    except BaseException:  # the program's own class may raise anything
        return "Exception"
    return f"{name}: {message}" if message else name


_type_name = type.__dict__["__name__"].__get__  # past a metaclass's own `__name__`


def _last_expression(text: str) -> Arguments:
    if not text:
        return Arguments(wire.OK)
    try:
        code = compile(text.lstrip(" \t"), "<input>", "eval", dont_inherit=True)
    except Exception as error:
        return Arguments(wire.ERROR, describe(error))
    return Arguments(wire.OK, code=code)
