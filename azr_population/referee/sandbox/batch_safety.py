"""Programs whose executions may share a child.

No execution may affect the next: a batch-safe program can only change and see its own namespace,
its arguments, and immutable objects. The compiled code shows that:

- no imports;
- no builtin that inspects or changes the interpreter;
- no name that begins with an underscore, except `_`, `__` and the `__init__` of its own classes;
- no attribute that leads from a plain object to the interpreter (`gi_frame`, `format`, `mro`).

When memory runs out depends on earlier executions. An execution that runs out is made again, alone;
a program that catches exceptions could hide that, and is not batch-safe.
"""

import builtins
import dis
import opcode
from types import CodeType
from typing import NamedTuple

_SAFE_BUILTINS = """
    abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod
    enumerate filter float frozenset hasattr hash hex int isinstance issubclass iter len list map
    max min next object oct ord pow print property range repr reversed round set slice sorted
    staticmethod str sum tuple zip
    ArithmeticError AssertionError AttributeError BaseException EOFError Exception
    FloatingPointError IndexError KeyError LookupError NameError NotImplementedError OSError
    OverflowError RecursionError RuntimeError StopIteration SyntaxError TypeError
    UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError ZeroDivisionError
"""
BUILTINS = frozenset(_SAFE_BUILTINS.split())
_KEPT = frozenset(("None", "True", "False"))
_OTHER_BUILTINS = frozenset(vars(builtins)) - BUILTINS - _KEPT

# Attributes of frames and others that lead to the interpreter. `format` follows attributes given as
# text; `register` changes an abstract class globally.
_REFUSED = frozenset(
    ("format", "format_map", "mro", "register", "f_back", "f_builtins", "f_code", "f_generator",
     "f_globals", "f_lineno", "f_locals", "f_trace")
)  # fmt: skip
_PREFIXES = ("gi_", "cr_", "ag_", "tb_", "func_", "co_")

# Names that the compiler defines in a class body, and the one special method that is allowed.
_CLASS_NAMES = frozenset(
    ("__name__", "__module__", "__qualname__", "__doc__", "__firstlineno__",
     "__static_attributes__", "__init__")
)  # fmt: skip

_NAMED_OPERATIONS = (
    "MATCH_CLASS", "GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "SETUP_ASYNC_WITH",
    "BEFORE_ASYNC_WITH", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD", "IMPORT_NAME",
)  # fmt: skip
_OPERATIONS = frozenset(opcode.opmap[n] for n in _NAMED_OPERATIONS if n in opcode.opmap)
_SETS = frozenset(opcode.opmap[n] for n in ("BUILD_SET", "SET_ADD", "SET_UPDATE"))
_HASHING = frozenset(("hash", "set", "frozenset"))
_FORMATTING = ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE")
_FORMATS = frozenset(opcode.opmap[n] for n in _FORMATTING if n in opcode.opmap)
_WRITING = frozenset(("str", "repr", "ascii", "print"))
_VARIABLE_OPERATIONS = ("_NAME", "_GLOBAL", "_GLOBALS")  # the ends of LOAD_NAME, STORE_GLOBAL, ...


class BatchSafety(NamedTuple):
    """Whether a program is batch-safe; if so, whether it uses sets or hashes, whose order or value
    may depend on addresses, and whether it uses these or prints objects."""

    safe: bool
    hashes: bool = False
    may_show_addresses: bool = False


def names(code: CodeType) -> frozenset[str]:
    """The names in a program: attributes, globals, modules."""
    return frozenset().union(*(inner.co_names for inner in _codes(code)))


def batch_safety(code: CodeType) -> BatchSafety:
    """See the module's docstring."""
    codes = _codes(code)
    named: set[str] = set()
    operations: set[int] = set()
    for inner in codes:
        named.update(inner.co_names)
        operations.update(inner.co_code[::2])
    if not (_REFUSED.isdisjoint(named) and _OPERATIONS.isdisjoint(operations)):
        return BatchSafety(False)
    if any(name.startswith(_PREFIXES) for name in named):
        return BatchSafety(False)
    doubtful = {name for name in named if name in _OTHER_BUILTINS or name[:1] == "_"} - {"_", "__"}
    if doubtful and not all(_harmless(inner, doubtful) for inner in codes):
        return BatchSafety(False)
    hashes = not (_SETS.isdisjoint(operations) and _HASHING.isdisjoint(named))
    writes = not (_FORMATS.isdisjoint(operations) and _WRITING.isdisjoint(named))
    writes = writes or any("%" in repr(inner.co_consts) for inner in codes)  # '%s' % f
    if hashes and any(map(_holds_nan, codes)):  # NaN's hash is its address, the same in each run
        return BatchSafety(False)
    return BatchSafety(True, hashes, hashes or writes)


def _codes(code: CodeType) -> list[CodeType]:
    """A code object and all inside it."""
    codes = [code]
    for inner in codes:  # grows while it is gone through
        codes += [constant for constant in inner.co_consts if type(constant) is CodeType]
    return codes


def _holds_nan(code: CodeType) -> bool:
    return any("nan" in repr(v) for v in code.co_consts if type(v) not in (str, bytes, CodeType))


def _harmless(code: CodeType, doubtful: set[str]) -> bool:
    """Whether the doubtful names are only those that a class body defines, as variables."""
    return all(
        step.argval in _CLASS_NAMES and step.opname.endswith(_VARIABLE_OPERATIONS)
        for step in dis.get_instructions(code)
        if step.opcode in dis.hasname and step.argval in doubtful
    )
