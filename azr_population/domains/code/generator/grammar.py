"""A typed grammar of small Python functions `f` over integers, lists of integers and strings.

`Grammar(rng).program(level)` writes one program; `level` is the number of statements before the
return (0-3, more is allowed). Everything it can write ends: loops run over values that they do not
change or over short ranges, and every `while` moves towards its bound by a positive constant. Not
covered: functions in functions, classes, dictionaries, floats, recursion, exceptions, imports.
"""

import re
from typing import NamedTuple

from azr_population.domains.code.generator.expressions import (
    ARGUMENTS,
    INT,
    LIST,
    STR,
    Expressions,
    Scope,
)

_LOCALS = "xyzw"


class Written(NamedTuple):
    """A program and the types of its parameters, in order."""

    source: str
    parameters: tuple[str, ...]


class Grammar(Expressions):
    """Draws programs and arguments from one generator, so that a seed gives the same ones."""

    def program(self, level: int, depth: int = 2, parameters: int | None = None) -> Written:
        """A program of `level` statements and a return; expressions nest up to `depth`.

        Every parameter and every local is read at least once.
        """
        while True:
            written = self._draw(level, depth, parameters)
            if written is not None:
                return written

    def arguments(self, parameters: tuple[str, ...]) -> str:
        """Argument list as source text, e.g. `[1, 2], 'ab'`."""
        return ", ".join(repr(self._value(kind)) for kind in parameters)

    # -- programs -----------------------------------------------------------------------------

    def _draw(self, level: int, depth: int, parameters: int | None) -> Written | None:
        rng = self.rng
        count = parameters or rng.choices((1, 2, 3), (58, 38, 4))[0]
        kinds = [rng.choices((INT, LIST, STR), (35, 37, 28))[0] for _ in range(count)]
        scope = Scope({})
        for kind in kinds:
            free = [name for name in ARGUMENTS[kind] if name not in scope.types]
            if not free:
                return None
            scope.types[free[0]] = kind
        names = scope.unread = list(scope.types)
        head = f"def f({', '.join(names)}):"
        lines: list[str] = []
        for _ in range(level):
            lines += self._statement(scope, depth, nested=level > 1 and rng.random() < 0.25)
        kind = self._result_kind(scope)
        lines.append(f"return {self._expression(kind, scope, depth if level == 0 else depth - 1)}")
        body = "\n".join("    " + line for line in lines)
        if any(not reads(body, name) for name in scope.types):
            return None
        return Written(f"{head}\n{body}", tuple(kinds))

    # -- statements ---------------------------------------------------------------------------

    def _result_kind(self, scope: Scope) -> str:
        if scope.unread and self.rng.random() < 0.6:
            return scope.types[scope.unread[-1]]
        return self.rng.choices((INT, LIST, STR), (40, 34, 26))[0]

    def _statement(self, scope: Scope, depth: int, nested: bool = False) -> list[str]:
        kinds = [self._assign, self._change, self._if, self._for, self._while, self._method]
        return self.rng.choices(kinds, (26, 10, 18, 30, 7, 9))[0](scope, depth, nested)

    def _new(self, scope: Scope, kind: str) -> str | None:
        free = [name for name in _LOCALS if name not in scope.types]
        if not free:
            return None
        scope.types[free[0]] = kind
        scope.unread.append(free[0])
        return free[0]

    def _assign(self, scope: Scope, depth: int, nested: bool) -> list[str]:
        kind = self._result_kind(scope)
        value = self._expression(kind, scope, depth - 1 if self.rng.random() < 0.7 else depth)
        name = self._new(scope, kind)
        return [f"{name} = {value}"] if name else []

    def _change(self, scope: Scope, depth: int, nested: bool = False) -> list[str]:
        """An existing name takes a new value."""
        rng = self.rng
        names = [name for name in scope.types if name not in scope.fixed]
        if not names:
            return []
        name = rng.choice(names)
        kind = scope.types[name]
        if kind == INT:
            operator = rng.choices(("+=", "-=", "*="), (5, 4, 2))[0]
            value = str(rng.randint(2, 4)) if operator == "*=" else self._int(scope, 0)
            return [f"{name} {operator} {rng.randint(1, 9) if value == name else value}"]
        if kind == LIST:
            return [f"{name} = {self._list(scope, 1, name)}"]
        if rng.random() < 0.5:
            return [f"{name} += {self._letter(scope)}"]
        return [f"{name} = {self._string(scope, 1, name)}"]

    def _method(self, scope: Scope, depth: int, nested: bool) -> list[str]:
        """A list changes in place."""
        names = scope.names(LIST, changeable=True)
        if not names:
            return self._change(scope, depth)
        name = self.rng.choice(names)
        write = self.rng.choices(
            ("append({})", "insert(0, {})", "reverse()", "sort()", "pop()", "pop(0)"),
            (4, 2, 2, 2, 1, 1),
        )[0]
        return [f"{name}.{write.format(self._int(scope, 1))}"]

    def _if(self, scope: Scope, depth: int, nested: bool) -> list[str]:
        condition = self._condition(scope)
        before = dict(scope.types)
        lines = [f"if {condition}:", *self._block(scope, depth, nested)]
        if self.rng.random() < 0.45:
            lines += ["else:", *self._block(scope, depth, False)]
        scope.types = before
        scope.unread = [name for name in scope.unread if name in before]
        return lines

    def _block(self, scope: Scope, depth: int, nested: bool) -> list[str]:
        write = self._for if nested and self.rng.random() < 0.3 else self._change
        return ["    " + line for line in write(scope, depth, False)] or ["    pass"]

    def _for(self, scope: Scope, depth: int, nested: bool) -> list[str]:
        """A local is built up over the elements of a list, a string or a range."""
        rng = self.rng
        over = self._iterable(scope)
        if over is None:
            return self._assign(scope, depth, nested)
        text, loop, kind = over
        total = rng.choices((INT, LIST, STR), (45, 33, 22) if kind == INT else (20, 0, 60))[0]
        fresh = total != INT or rng.random() < 0.8
        olds = [name for name in scope.names(total, changeable=True) if name != text]
        lines = []
        if fresh or not olds:
            name = self._new(scope, total)
            if name is None:
                return []
            lines.append(f"{name} = {self._start(total)}")
        else:
            name = rng.choice(olds)
        inner = Scope({**scope.types, loop: kind}, [loop], {*scope.fixed, name, text, loop})
        inner.types.pop(name)
        step = self._step(name, total, inner)
        lines.append(f"for {loop} in {text}:")
        if rng.random() < 0.30 or nested:
            lines += [f"    if {self._condition(inner, loop)}:", f"        {step}"]
            if rng.random() < 0.35:
                lines += ["    else:", f"        {self._step(name, total, inner)}"]
        else:
            lines.append(f"    {step}")
        turn = [line for line in lines[-4:] if not line.startswith("for")]
        if not any(reads(line, loop) for line in turn) and rng.random() < 0.8:
            lines[-1] = lines[-1].split(name)[0] + self._step(name, total, inner, loop)
        return lines

    def _iterable(self, scope: Scope) -> tuple[str, str, str] | None:
        """What a loop runs over: text, name and type of the loop's variable."""
        lists = scope.names(LIST)
        options = [(name, "v", INT) for name in lists] * 3
        options += [(name, "c", STR) for name in scope.names(STR)] * 3
        options.append((f"range({self.rng.randint(2, 4)})", "i", INT))
        options += [(f"range(len({name}))", "i", INT) for name in lists]
        options += [(f"{name}[1:]", "v", INT) for name in lists]
        options = [option for option in options if option[1] not in scope.types]
        return self.rng.choice(options) if options else None

    def _start(self, kind: str) -> str:
        if kind == INT:
            return self.rng.choices(("0", "1", str(self.rng.randint(2, 9))), (7, 2, 1))[0]
        return "[]" if kind == LIST else "''"

    def _step(self, name: str, kind: str, scope: Scope, must: str | None = None) -> str:
        """What one turn of a loop does to the local that it builds up."""
        rng = self.rng
        if kind == INT:
            value = must or self._int(scope, rng.choices((0, 1), (6, 4))[0])
            return self._pick(
                (12, f"{name} += {value}"),
                (3, f"{name} -= {value}"),
                (2, f"{name} = max({name}, {value})"),
                (1, f"{name} = {value} - {name}"),
            )
        if kind == LIST:
            value = must or self._int(scope, rng.choices((0, 1), (4, 6))[0])
            before = rng.random() < 0.15
            return f"{name} = [{value}] + {name}" if before else f"{name}.append({value})"
        value = must or self._letter(scope)
        if must and scope.types.get(must) == INT:
            value = f"str({must})"
        return f"{name} = {value} + {name}" if rng.random() < 0.3 else f"{name} += {value}"

    def _while(self, scope: Scope, depth: int, nested: bool) -> list[str]:
        rng = self.rng
        ints, texts = (scope.names(kind, changeable=True) for kind in (INT, STR))
        if ints and (not texts or rng.random() < 0.7):
            name = rng.choice(ints)
            if rng.random() < 0.6:
                step, bound = rng.randint(2, 7), rng.randint(2, 9)
                return [f"while {name} > {bound}:", f"    {name} -= {step}"]
            bound, step = rng.randint(5, 20), rng.randint(2, 7)
            return [f"while {name} < {bound}:", f"    {name} += {step}"]
        if texts:
            name, bound = rng.choice(texts), rng.randint(3, 6)
            return [f"while len({name}) < {bound}:", f"    {name} += {self._letter(scope)}"]
        return self._change(scope, depth)


def reads(text: str, name: str) -> bool:
    """Whether the name stands anywhere but as the target of an assignment."""
    read = re.sub(rf"(?m)^\s*{name} [-+*]?= ", " ", text)
    return re.search(rf"(?<![A-Za-z_'.]){name}(?![A-Za-z_'])", read) is not None
