"""What plain programs may import: of some modules, what computes and keeps nothing.

A plain program shares its child with others, so it must not get hold of anything that one could
change and another see: no module itself, no list or dict of a module, no generator of random
numbers, nothing that reads or sets attributes by their names as text. It gets a facade: a new
module object for each execution with the names below in it. Where a program asks for more, it is
not plain after all, and is executed in a child of its own.

Classes and functions that are written in Python take attributes (`Counter.seen = 1`); those are
handed only to programs that set none.
"""

import sys
from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any

_NAMES: dict[str, str] = {
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
        """Whether the present execution asked for something that plain programs do not get."""
        self._contents: dict[str, dict[str, Any]] = {}
        self._fixed: dict[str, dict[str, Any]] = {}
        self._open: dict[str, ModuleType] = {}
        self._source = self._contents
        for name in sorted({*allowed, "__future__"} & _NAMES.keys()):
            module = sys.modules[name]
            head = {
                "__doc__": module.__doc__,
                "__spec__": module.__spec__,
                "__loader__": module.__loader__,
                "__getattr__": self._missing,
            }
            if hasattr(module, "__file__"):
                head["__file__"] = module.__file__
            values = {n: getattr(module, n) for n in _NAMES[name].split() if hasattr(module, n)}
            self._contents[name] = {**head, **values}
            fixed = {n: value for n, value in values.items() if not _takes_attributes(value)}
            self._fixed[name] = {**head, **fixed}

    def private_names(self) -> frozenset[str]:
        """The names with one underscore that something handed out has."""
        private: set[str] = set()
        for contents in self._contents.values():
            for value in contents.values():
                for thing in (value, type(value), getattr(value, "__origin__", None)):
                    private.update(n for n in dir(thing) if n[0] == "_" and n[:2] != "__")
        return frozenset(private)

    def begin(self, fixed: bool) -> None:
        """Start an execution; with `fixed`, only what takes no attributes is handed out."""
        self.refused = False
        self._open = {}
        self._source = self._fixed if fixed else self._contents

    def importer(self) -> Callable[..., ModuleType]:
        """The `__import__` of plain programs."""

        def __import__(
            name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
        ) -> ModuleType:
            module = self._open.get(name)
            if module is not None and level == 0:
                return module
            contents = self._source.get(name) if level == 0 else None
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
        # Not an AttributeError: on that, `from m import n` would look for the real module `m.n`.
        self.refused = True
        raise ImportError(f"plain programs do not get {name}")


def _takes_attributes(value: Any) -> bool:
    """Whether an attribute could be set on a value; for `typing.Deque`, on what it stands for."""
    value = getattr(value, "__origin__", value)
    try:
        value.referee = None
    except (AttributeError, TypeError):
        return False
    del value.referee
    return True
