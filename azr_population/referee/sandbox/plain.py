"""Which programs are plain: those that can neither change nor see anything but their own.

Executions of plain programs share a child, those of one task and those of several. So nothing that
a plain program leaves behind may be told by the next: what it can reach is its own namespace, the
arguments made for it, and what nobody can change (immutable builtins; of modules, what
`sandbox.facade` hands out). This is read off the compiled code, after the compiler has had its say
about what the text means:

- of the builtins, none that looks into or changes the interpreter;
- no name that begins with an underscore, but for `_`, `__`, private names of its own, and the
  `__init__` that a class of its own defines;
- no attribute that leads from a plain object to the interpreter (`gi_frame`, `format`, `mro`).

Attributes may be set, on instances of its own classes. A program that does so is handed nothing
that takes attributes (`facade`), so that it cannot set those of anything that outlives it.
"""

import builtins
import dis
import opcode
from types import CodeType
from typing import NamedTuple

_PLAIN_BUILTINS = """
    abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod
    enumerate filter float frozenset hasattr hash hex int isinstance issubclass iter len list map
    max min next object oct ord pow print property range repr reversed round set slice sorted
    staticmethod str sum tuple zip
    ArithmeticError AssertionError AttributeError BaseException EOFError Exception
    FloatingPointError IndexError KeyError LookupError NameError NotImplementedError OSError
    OverflowError RecursionError RuntimeError StopIteration SyntaxError TypeError
    UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError ZeroDivisionError
"""
BUILTINS = frozenset(_PLAIN_BUILTINS.split())
_KEPT = frozenset(("None", "True", "False"))
_OTHER_BUILTINS = frozenset(vars(builtins)) - BUILTINS - _KEPT

# Names that are no attributes of plain objects' own: those of frames, and of what reaches further.
# `format` walks attributes by text, `register` changes an abstract class for everybody.
_REFUSED = frozenset(
    ("format", "format_map", "mro", "register", "f_back", "f_builtins", "f_code", "f_generator",
     "f_globals", "f_lineno", "f_locals", "f_trace")
)  # fmt: skip
_PREFIXES = ("gi_", "cr_", "ag_", "tb_", "func_", "co_")

# What a class body defines: by the compiler, and the one method that plain classes may have.
_CLASS_NAMES = frozenset(
    ("__name__", "__module__", "__qualname__", "__doc__", "__firstlineno__",
     "__static_attributes__", "__init__")
)  # fmt: skip
_FUTURE = "__future__"
_STAR = ("*",)  # what `from m import *` asks for, in every version

_NAMED_OPERATIONS = (
    "MATCH_CLASS", "GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "SETUP_ASYNC_WITH",
    "BEFORE_ASYNC_WITH", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD",
)  # fmt: skip
_OPERATIONS = frozenset(opcode.opmap[n] for n in _NAMED_OPERATIONS if n in opcode.opmap)
_SETTING = frozenset(opcode.opmap[n] for n in ("STORE_ATTR", "DELETE_ATTR"))
_SETS = frozenset(opcode.opmap[n] for n in ("BUILD_SET", "SET_ADD", "SET_UPDATE"))
_HASHING = frozenset(("hash", "set", "frozenset"))
_FORMATTING = ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE")
_FORMATS = frozenset(opcode.opmap[n] for n in _FORMATTING if n in opcode.opmap)
_WRITING = frozenset(("str", "repr", "ascii", "print"))
_VARIABLE_OPERATIONS = ("_NAME", "_GLOBAL", "_GLOBALS")  # the ends of LOAD_NAME, STORE_GLOBAL, ...


class Plainness(NamedTuple):
    """Whether a program is plain; if so, whether it sets attributes, whether it has sets or hashes,
    whose order or value may come from addresses, and whether it has these or writes objects out."""

    plain: bool
    sets_attributes: bool = False
    hashes: bool = False
    may_show_addresses: bool = False


def names(code: CodeType) -> frozenset[str]:
    """What a program names: attributes, globals, modules."""
    return frozenset().union(*(inner.co_names for inner in _codes(code)))


def plainness(code: CodeType, private: frozenset[str] = frozenset()) -> Plainness:
    """See above. `private`: names with one underscore that what is handed out has, too."""
    codes = _codes(code)
    named: set[str] = set()
    operations: set[int] = set()
    for inner in codes:
        named.update(inner.co_names)
        operations.update(inner.co_code[::2])
    if not (_REFUSED.isdisjoint(named) and _OPERATIONS.isdisjoint(operations)):
        return Plainness(False)
    if any(_STAR in inner.co_consts for inner in codes):
        return Plainness(False)
    if any(name.startswith(_PREFIXES) for name in named):
        return Plainness(False)
    questionable = {name for name in named if name in _OTHER_BUILTINS or name[:1] == "_"}
    questionable -= {"_", "__"}
    if questionable and not all(_harmless(inner, questionable, private) for inner in codes):
        return Plainness(False)
    hashes = not (_SETS.isdisjoint(operations) and _HASHING.isdisjoint(named))
    writes = not (_FORMATS.isdisjoint(operations) and _WRITING.isdisjoint(named))
    writes = writes or any("%" in repr(inner.co_consts) for inner in codes)  # '%s' % f
    if hashes and any(map(_holds_nan, codes)):  # its hash is where it lies, and it lies still
        return Plainness(False)
    return Plainness(True, not _SETTING.isdisjoint(operations), hashes, hashes or writes)


def is_plain(code: CodeType) -> bool:
    """Whether a program, or the expression of its input, is plain."""
    return plainness(code).plain


def _codes(code: CodeType) -> list[CodeType]:
    """A code object and all inside it."""
    codes = [code]
    for inner in codes:  # grows while it is gone through
        codes += [constant for constant in inner.co_consts if type(constant) is CodeType]
    return codes


def _holds_nan(code: CodeType) -> bool:
    return any("nan" in repr(v) for v in code.co_consts if type(v) not in (str, bytes, CodeType))


def _harmless(code: CodeType, questionable: set[str], private: frozenset[str]) -> bool:
    """Whether names that look dangerous are not what they look like.

    A builtin's name may be an attribute's (`re.compile`). A private name may be any but one of
    `private`. Of those with two underscores there is what a class body defines, and `__future__`.
    """
    doubtful = set()
    for name in questionable.intersection(code.co_names):
        if name[:1] != "_" or name[:2] == "__":
            doubtful.add(name)
        elif name in private:
            return False
    if not doubtful:
        return True
    for step in dis.get_instructions(code):
        name = step.argval
        if type(name) is not str or name not in doubtful or step.opcode not in dis.hasname:
            continue
        if step.opname == "IMPORT_NAME":
            if name.startswith("_") and name != _FUTURE:
                return False
        elif step.opname.endswith(_VARIABLE_OPERATIONS):
            if name not in _CLASS_NAMES:
                return False
        elif name.startswith("_"):  # an attribute
            return False
    return True
