"""Which programs may share a child: those that can neither change nor see anything but their own.

A plain program imports nothing, defines no class, sets no attribute, and uses no name or attribute
that begins with an underscore and no builtin that looks into or changes the interpreter. It is
executed with the plain builtins only. So nothing that it leaves behind can be told by the next one:
what it can reach is its own namespace, the arguments made for it, and immutable things.

This is read off the compiled code, after the compiler has had its say about what the text means.
"""

from __future__ import annotations

import builtins
import opcode
from types import CodeType

_PLAIN_BUILTINS = """
    abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter
    float frozenset hash hex int isinstance issubclass iter len list map max min next oct ord pow
    print range repr reversed round set slice sorted str sum tuple zip
    ArithmeticError AssertionError AttributeError BaseException EOFError Exception
    FloatingPointError IndexError KeyError LookupError NameError NotImplementedError OSError
    OverflowError RecursionError RuntimeError StopIteration SyntaxError TypeError
    UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError ZeroDivisionError
"""
BUILTINS = frozenset(_PLAIN_BUILTINS.split())
_OTHER_BUILTINS = frozenset(vars(builtins)) - BUILTINS
# Attributes that lead from a plain object to the interpreter; `format` walks attributes by text.
_ATTRIBUTES = frozenset(("format", "format_map", "mro"))
_PREFIXES = ("_", "gi_", "cr_", "ag_", "tb_", "func_", "co_")
_FRAME = frozenset(
    (
        "f_back",
        "f_builtins",
        "f_code",
        "f_generator",
        "f_globals",
        "f_lineno",
        "f_locals",
        "f_trace",
    )
)
_NAMED_OPERATIONS = (
    "IMPORT_NAME", "IMPORT_FROM", "IMPORT_STAR", "LOAD_BUILD_CLASS", "STORE_ATTR", "DELETE_ATTR",
    "MATCH_CLASS", "GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "SETUP_ASYNC_WITH",
    "BEFORE_ASYNC_WITH", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD",
)  # fmt: skip
_OPERATIONS = frozenset(opcode.opmap[n] for n in _NAMED_OPERATIONS if n in opcode.opmap)
_KEPT = frozenset(("None", "True", "False"))


def is_plain(code: CodeType) -> bool:
    """Whether a program, or the expression of its input, is plain. See above."""
    names = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    if not (
        names.isdisjoint(_OTHER_BUILTINS - _KEPT)
        and names.isdisjoint(_ATTRIBUTES)
        and names.isdisjoint(_FRAME)
        and _OPERATIONS.isdisjoint(code.co_code[::2])
    ):
        return False
    # A comprehension's only argument is named `.0` by the compiler, which no text can name.
    if any(name.startswith(_PREFIXES) for name in names):
        return False
    return all(is_plain(inner) for inner in code.co_consts if type(inner) is CodeType)
