"""Programs that may share a child, and the modules that they get.

Executions of shareable programs run in one child, of one task or of several. So no execution may
affect the next: a shareable program can only change and see its own namespace, its arguments, and
immutable objects. Three parts ensure that.

`shareability` checks the compiled code:

- no builtin that inspects or changes the interpreter;
- no name that begins with an underscore, except `_`, `__` and the `__init__` of its own classes;
- no attribute that leads from a plain object to the interpreter (`gi_frame`, `format`, `mro`);
- not both imports and attribute assignments, because imported objects could keep them.

`Facades` supplies modules: for each execution a new module object with the names below, which
compute and keep no state. It never supplies a real module, a list or dict of a module, or a random
number generator. A program that needs more is executed in a separate child.

`batchable` checks what the code alone does not show:

- memory. When it runs out depends on earlier programs. A program that runs out is executed again,
  isolated; a program that can catch MemoryError would hide that.
- `typing`. Its objects accept attributes and cache what they were made of, so programs must not
  reach them: annotations are allowed, any other use is not.
"""

import ast
import builtins
import dis
import opcode
import sys
from collections.abc import Callable, Collection
from types import CodeType, ModuleType
from typing import Any, NamedTuple

_SHAREABLE_BUILTINS = """
    abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod
    enumerate filter float frozenset hasattr hash hex int isinstance issubclass iter len list map
    max min next object oct ord pow print property range repr reversed round set slice sorted
    staticmethod str sum tuple zip
    ArithmeticError AssertionError AttributeError BaseException EOFError Exception
    FloatingPointError IndexError KeyError LookupError NameError NotImplementedError OSError
    OverflowError RecursionError RuntimeError StopIteration SyntaxError TypeError
    UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError ZeroDivisionError
"""
BUILTINS = frozenset(_SHAREABLE_BUILTINS.split())
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
_FUTURE = "__future__"
_STAR = ("*",)  # the names of `from m import *` in every version

_NAMED_OPERATIONS = (
    "MATCH_CLASS", "GET_AWAITABLE", "GET_AITER", "GET_ANEXT", "SETUP_ASYNC_WITH",
    "BEFORE_ASYNC_WITH", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD",
)  # fmt: skip
_OPERATIONS = frozenset(opcode.opmap[n] for n in _NAMED_OPERATIONS if n in opcode.opmap)
_SETTING = frozenset(opcode.opmap[n] for n in ("STORE_ATTR", "DELETE_ATTR"))
_IMPORT = opcode.opmap["IMPORT_NAME"]
_SETS = frozenset(opcode.opmap[n] for n in ("BUILD_SET", "SET_ADD", "SET_UPDATE"))
_HASHING = frozenset(("hash", "set", "frozenset"))
_FORMATTING = ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE")
_FORMATS = frozenset(opcode.opmap[n] for n in _FORMATTING if n in opcode.opmap)
_WRITING = frozenset(("str", "repr", "ascii", "print"))
_VARIABLE_OPERATIONS = ("_NAME", "_GLOBAL", "_GLOBALS")  # the ends of LOAD_NAME, STORE_GLOBAL, ...


class Shareability(NamedTuple):
    """Whether a program is shareable; if so, whether it uses sets or hashes, whose order or value
    may depend on addresses, and whether it uses these or prints objects."""

    shareable: bool
    hashes: bool = False
    may_show_addresses: bool = False


def names(code: CodeType) -> frozenset[str]:
    """The names in a program: attributes, globals, modules."""
    return frozenset().union(*(inner.co_names for inner in _codes(code)))


def shareability(code: CodeType) -> Shareability:
    """See the module's docstring."""
    codes = _codes(code)
    named: set[str] = set()
    operations: set[int] = set()
    for inner in codes:
        named.update(inner.co_names)
        operations.update(inner.co_code[::2])
    if not (_REFUSED.isdisjoint(named) and _OPERATIONS.isdisjoint(operations)):
        return Shareability(False)
    if _IMPORT in operations and not _SETTING.isdisjoint(operations):
        return Shareability(False)
    if any(_STAR in inner.co_consts for inner in codes):
        return Shareability(False)
    if any(name.startswith(_PREFIXES) for name in named):
        return Shareability(False)
    doubtful = {name for name in named if name in _OTHER_BUILTINS or name[:1] == "_"} - {"_", "__"}
    if doubtful and not all(_harmless(inner, doubtful) for inner in codes):
        return Shareability(False)
    hashes = not (_SETS.isdisjoint(operations) and _HASHING.isdisjoint(named))
    writes = not (_FORMATS.isdisjoint(operations) and _WRITING.isdisjoint(named))
    writes = writes or any("%" in repr(inner.co_consts) for inner in codes)  # '%s' % f
    if hashes and any(map(_holds_nan, codes)):  # NaN's hash is its address, the same in each run
        return Shareability(False)
    return Shareability(True, hashes, hashes or writes)


def _codes(code: CodeType) -> list[CodeType]:
    """A code object and all inside it."""
    codes = [code]
    for inner in codes:  # grows while it is gone through
        codes += [constant for constant in inner.co_consts if type(constant) is CodeType]
    return codes


def _holds_nan(code: CodeType) -> bool:
    return any("nan" in repr(v) for v in code.co_consts if type(v) not in (str, bytes, CodeType))


def _harmless(code: CodeType, doubtful: set[str]) -> bool:
    """Whether the doubtful names are only those that a class body defines, as variables, and
    `__future__`."""
    for step in dis.get_instructions(code):
        if step.opcode not in dis.hasname or step.argval not in doubtful:
            continue
        if step.opname == "IMPORT_NAME":
            if step.argval != _FUTURE:
                return False
        elif step.argval not in _CLASS_NAMES or not step.opname.endswith(_VARIABLE_OPERATIONS):
            return False
    return True


_IMPORTABLE: dict[str, str] = {
    "__future__": "annotations",
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "collections": "Counter OrderedDict defaultdict deque namedtuple",
    "decimal": """Decimal ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN
        ROUND_HALF_UP ROUND_UP""",
    "fractions": "Fraction",
    "functools": "cache cmp_to_key lru_cache partial reduce",
    "heapq": "heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest",
    "itertools": """accumulate batched chain combinations combinations_with_replacement compress
        count cycle dropwhile filterfalse groupby islice pairwise permutations product repeat
        starmap takewhile tee zip_longest""",
    "json": "dumps loads",
    "math": """acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist
        e erf erfc exp exp2 expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose
        isfinite isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi
        pow prod radians remainder sin sinh sqrt sumprod tan tanh tau trunc ulp""",
    "operator": """abs add and_ concat contains countOf eq floordiv ge getitem gt indexOf inv invert
        is_ is_not itemgetter le lshift lt mod mul ne neg not_ or_ pos pow rshift sub truediv truth
        xor""",
    "re": """A ASCII DOTALL I IGNORECASE M MULTILINE S VERBOSE X compile escape findall finditer
        fullmatch match search split sub subn""",
    "statistics": """fmean geometric_mean harmonic_mean mean median median_high median_low mode
        multimode pstdev pvariance quantiles stdev variance""",
    "string": """ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits
        printable punctuation whitespace""",
    "typing": """Any Callable DefaultDict Deque Dict FrozenSet Iterable Iterator List Mapping
        Optional Sequence Set Tuple Union""",
}


class Facades:
    """Hands out facades, the same one to all imports of one execution."""

    def __init__(self, allowed: Collection[str]) -> None:
        self.refused = False
        """Whether the current execution requested something that it does not get."""
        self._contents: dict[str, dict[str, Any]] = {}
        self._open: dict[str, ModuleType] = {}
        for name in sorted({*allowed, _FUTURE} & _IMPORTABLE.keys()):
            module = sys.modules[name]
            head = {
                "__doc__": module.__doc__,
                "__spec__": module.__spec__,
                "__loader__": module.__loader__,
                "__getattr__": self._missing,
            }
            if hasattr(module, "__file__"):
                head["__file__"] = module.__file__
            values = {
                n: getattr(module, n) for n in _IMPORTABLE[name].split() if hasattr(module, n)
            }
            self._contents[name] = {**head, **values}

    def begin(self) -> None:
        """Starts an execution."""
        self.refused = False
        self._open = {}

    def importer(self) -> Callable[..., ModuleType]:
        """The `__import__` of shareable programs."""

        def __import__(
            name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
        ) -> ModuleType:
            module = self._open.get(name)
            if module is not None and level == 0:
                return module
            contents = self._contents.get(name) if level == 0 else None
            if contents is None:
                self._refuse(name)
            module = ModuleType(name)
            module.__dict__.update(contents)  # type: ignore[arg-type]
            self._open[name] = module
            return module

        return __import__

    def _missing(self, name: str) -> Any:
        self._refuse(name)

    def _refuse(self, name: str) -> None:
        # Not an AttributeError, after which `from m import n` would look for the real module `m.n`.
        self.refused = True
        raise ImportError(f"programs that share a child do not get {name}")


_NARROW = frozenset(
    name
    for name in BUILTINS
    if isinstance(error := getattr(builtins, name), type)
    and issubclass(error, BaseException)
    and not issubclass(MemoryError, error)
)
_GENERIC = frozenset(("dict", "frozenset", "list", "set", "tuple", "type"))
_IN_ANNOTATIONS = (ast.BinOp, ast.BitOr, ast.Constant, ast.List, ast.Load, ast.Name, ast.Tuple)


def batchable(source: str, imports_typing: bool) -> bool:
    """Whether a shareable program has the same result in a batch and isolated."""
    catches = "except" in source or "finally" in source
    if not (catches or imports_typing):
        return True
    nodes = list(ast.walk(ast.parse(source)))
    hints: set[str] = set()
    modules: set[str] = set()
    bound: set[str | None] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "typing":
            hints.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                names = modules if alias.name == "typing" else bound
                names.add(alias.asname or alias.name.partition(".")[0])
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.MatchMapping):
            bound.add(node.rest)
        elif not isinstance(node, ast.alias):  # functions, classes, handlers, patterns
            bound.add(getattr(node, "name", None))
    if catches and not all(_narrow(node, bound) for node in nodes):
        return False
    imported = hints | modules
    hinting: set[int] = set()
    for node in nodes:
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            parts = list(ast.walk(annotation)) if isinstance(annotation, ast.AST) else []
            if all(_hints(part, imported, bound) for part in parts):
                hinting.update(map(id, parts))
    return bound.isdisjoint(imported) and all(
        id(node) in hinting
        for node in nodes
        if (isinstance(node, ast.Name) and node.id in imported)
        or (isinstance(node, ast.Attribute) and node.attr in hints)
    )


def _narrow(node: ast.AST, bound: set[str | None]) -> bool:
    """Whether a node cannot catch a MemoryError."""
    if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
        return not node.finalbody  # type: ignore[attr-defined]
    if not isinstance(node, ast.ExceptHandler):
        return True
    kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return all(
        isinstance(kind, ast.Name) and kind.id in _NARROW and kind.id not in bound for kind in kinds
    )


def _hints(node: ast.AST, imported: set[str], bound: set[str | None]) -> bool:
    """Whether a part of an annotation passes nothing of `typing` to the program's objects."""
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and node.value.id in imported
    if isinstance(node, ast.Subscript):
        of = node.value.value if isinstance(node.value, ast.Attribute) else node.value
        return isinstance(of, ast.Name) and (of.id in imported or of.id in _GENERIC - bound)
    return isinstance(node, _IN_ANNOTATIONS)
