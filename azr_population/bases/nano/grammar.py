"""A typed grammar of small Python functions `f` over integers, lists of integers and strings.

`Grammar(rng).program(level)` writes one program; `level` is the number of statements before the
return (0-3, more is allowed). Everything it can write ends: loops run over values that they do not
change or over short ranges, and every `while` moves towards its bound by a positive constant. Names
tell types (`n, m, k` integers, `a, b` lists, `s, t` strings, `x, y, z` locals), because a base of a
million parameters has to be able to track them. Not covered: functions in functions, classes,
dictionaries, floats, recursion, exceptions, imports.
"""

from dataclasses import dataclass
from random import Random

from azr_population.bases.nano.expressions import INT, LETTERS, LIST, STR, Scope
from azr_population.bases.nano.statements import Statements, reads

ARGUMENTS = {INT: "nmk", LIST: "ab", STR: "st"}


@dataclass(frozen=True)
class Written:
    """A program and the types of its parameters, in order."""

    source: str
    parameters: tuple[str, ...]


class Grammar(Statements):
    """Draws programs and arguments from one generator, so that a seed gives the same ones."""

    def program(self, level: int, depth: int = 2, parameters: int | None = None) -> Written:
        """A program of `level` statements and a return; expressions nest up to `depth`.

        Every parameter and every local is read at least once.
        """
        while True:
            written = self._draw(level, depth, parameters)
            if written is not None:
                return written

    def arguments(self, parameters: tuple[str, ...], rng: Random | None = None) -> str:
        """Argument list as source text, e.g. `[1, 2], 'ab'`."""
        return ", ".join(repr(self._value(kind, rng or self.rng)) for kind in parameters)

    # -- values -------------------------------------------------------------------------------

    def _value(self, kind: str, rng: Random) -> object:
        if kind == INT:
            return self._integer(rng)
        size = rng.choices((1, 2, 3, 4, 5), (1, 3, 5, 4, 2))[0]
        if kind == LIST:
            return [self._integer(rng) for _ in range(size)]
        return "".join(rng.choice(LETTERS) for _ in range(size))

    @staticmethod
    def _integer(rng: Random) -> int:
        draw = rng.random()
        if draw < 0.80:
            return rng.randrange(0, 10)
        if draw < 0.92:
            return rng.randrange(10, 21)
        return rng.randrange(-9, 0)

    # -- programs -----------------------------------------------------------------------------

    def _draw(self, level: int, depth: int, parameters: int | None) -> Written | None:
        rng = self.rng
        count = parameters or rng.choices((1, 2, 3), (58, 38, 4))[0]
        kinds = [rng.choices((INT, LIST, STR), (35, 37, 28))[0] for _ in range(count)]
        scope = Scope({})
        names = []
        for kind in kinds:
            free = [name for name in ARGUMENTS[kind] if name not in scope.types]
            if not free:
                return None
            names.append(free[0])
            scope.types[free[0]] = kind
        scope.unread = list(names)
        lines: list[str] = []
        for _ in range(level):
            lines += self._statement(scope, depth, nested=level > 1 and rng.random() < 0.25)
        kind = self._result_kind(scope)
        lines.append(f"return {self._expression(kind, scope, depth if level == 0 else depth - 1)}")
        body = "\n".join("    " + line for line in lines)
        source = f"def f({', '.join(names)}):\n{body}"
        if any(not reads(body, name) for name in scope.types):
            return None
        return Written(source, tuple(kinds))
