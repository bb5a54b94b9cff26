"""Statements: assignments, branches and loops that end by construction."""

import re
from collections.abc import Callable

from azr_population.bases.nano.expressions import INT, LIST, STR, Expressions, Scope

_LOCALS = "xyzw"


class Statements(Expressions):
    """Draws statements as lines of source text and keeps the scope up to date."""

    def _result_kind(self, scope: Scope) -> str:
        if scope.unread and self.rng.random() < 0.6:
            return scope.types[scope.unread[-1]]
        return self.rng.choices((INT, LIST, STR), (40, 34, 26))[0]

    def _statement(self, scope: Scope, depth: int, nested: bool = False) -> list[str]:
        rng = self.rng
        kinds = [self._assign, self._change, self._if, self._for, self._while, self._method]
        write = rng.choices(kinds, (26, 10, 18, 30, 7, 9))[0]
        return write(scope, depth, nested)

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
            value = str(rng.randint(2, 4)) if operator == "*=" else self._expression(INT, scope, 0)
            if value == name:
                value = str(rng.randint(1, 9))
            return [f"{name} {operator} {value}"]
        if kind == LIST:
            return [f"{name} = {self._list(scope, 1, name)}"]
        if rng.random() < 0.5:
            return [f"{name} += {self._letter(scope)}"]
        return [f"{name} = {self._string(scope, 1, name)}"]

    def _method(self, scope: Scope, depth: int, nested: bool) -> list[str]:
        """A list changes in place."""
        names = [name for name in scope.names(LIST) if name not in scope.fixed]
        if not names:
            return self._change(scope, depth)
        name = self.rng.choice(names)
        write = self.rng.choices(
            ("append({})", "insert(0, {})", "reverse()", "sort()", "pop()", "pop(0)"),
            (4, 2, 2, 2, 1, 1),
        )[0]
        return [f"{name}.{write.format(self._expression(INT, scope, 1))}"]

    def _if(self, scope: Scope, depth: int, nested: bool) -> list[str]:
        condition = self._condition(scope)
        before = dict(scope.types)
        lines = [f"if {condition}:"]
        lines += self._block(scope, depth, nested, self._change)
        if self.rng.random() < 0.45:
            lines += ["else:", *self._block(scope, depth, False, self._change)]
        scope.types = before
        scope.unread = [name for name in scope.unread if name in before]
        return lines

    def _for(self, scope: Scope, depth: int, nested: bool) -> list[str]:
        """A local is built up over the elements of a list, a string or a range."""
        rng = self.rng
        over = self._iterable(scope)
        if over is None:
            return self._assign(scope, depth, nested)
        text, loop, kind = over
        total = rng.choices((INT, LIST, STR), (45, 33, 22) if kind == INT else (20, 0, 60))[0]
        fresh = total != INT or rng.random() < 0.8
        olds = [name for name in scope.names(total) if name not in scope.fixed and name != text]
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
        draw = rng.random()
        if draw < 0.30 or nested:
            lines += [f"    if {self._condition(inner, loop)}:", f"        {step}"]
            if rng.random() < 0.35:
                lines += ["    else:", f"        {self._step(name, total, inner)}"]
        else:
            lines.append(f"    {step}")
        if not any(reads(line, loop) for line in lines[-4:] if not line.startswith("for")) and (
            rng.random() < 0.8
        ):
            lines[-1] = lines[-1].split(name)[0] + self._step(name, total, inner, loop)
        return lines

    def _iterable(self, scope: Scope) -> tuple[str, str, str] | None:
        """What a loop runs over: text, name and type of the loop's variable."""
        rng = self.rng
        options: list[tuple[str, str, str]] = []
        options += [(name, "v", INT) for name in scope.names(LIST)] * 3
        options += [(name, "c", STR) for name in scope.names(STR)] * 3
        options.append((f"range({rng.randint(2, 4)})", "i", INT))
        options += [(f"range(len({name}))", "i", INT) for name in scope.names(LIST)]
        options += [(f"{name}[1:]", "v", INT) for name in scope.names(LIST)]
        options = [option for option in options if option[1] not in scope.types]
        return rng.choice(options) if options else None

    def _start(self, kind: str) -> str:
        if kind == INT:
            return self.rng.choices(("0", "1", str(self.rng.randint(2, 9))), (7, 2, 1))[0]
        return "[]" if kind == LIST else "''"

    def _step(self, name: str, kind: str, scope: Scope, must: str | None = None) -> str:
        """What one turn of a loop does to the local that it builds up."""
        rng = self.rng
        if kind == INT:
            value = must or self._expression(INT, scope, rng.choices((0, 1), (6, 4))[0])
            form = rng.choices(
                ("{n} += {v}", "{n} -= {v}", "{n} = max({n}, {v})", "{n} = {v} - {n}"),
                (12, 3, 2, 1),
            )[0]
            return form.format(n=name, v=value)
        if kind == LIST:
            value = must or self._expression(INT, scope, rng.choices((0, 1), (4, 6))[0])
            if rng.random() < 0.15:
                return f"{name} = [{value}] + {name}"
            return f"{name}.append({value})"
        value = must or self._letter(scope)
        if must and scope.types.get(must) == INT:
            value = f"str({must})"
        return f"{name} = {value} + {name}" if rng.random() < 0.3 else f"{name} += {value}"

    def _while(self, scope: Scope, depth: int, nested: bool) -> list[str]:
        rng = self.rng
        ints = [name for name in scope.names(INT) if name not in scope.fixed]
        texts = [name for name in scope.names(STR) if name not in scope.fixed]
        if ints and (not texts or rng.random() < 0.7):
            name = rng.choice(ints)
            if rng.random() < 0.6:
                step, bound = rng.randint(2, 7), rng.randint(2, 9)
                return [f"while {name} > {bound}:", f"    {name} -= {step}"]
            return [
                f"while {name} < {rng.randint(5, 20)}:",
                f"    {name} += {rng.randint(2, 7)}",
            ]
        if texts:
            name = rng.choice(texts)
            return [
                f"while len({name}) < {rng.randint(3, 6)}:",
                f"    {name} += {self._letter(scope)}",
            ]
        return self._change(scope, depth)

    def _block(
        self, scope: Scope, depth: int, nested: bool, simple: Callable[..., list[str]]
    ) -> list[str]:
        write = self._for if nested and self.rng.random() < 0.3 else self._change
        return ["    " + line for line in write(scope, depth, False)] or ["    pass"]


def reads(text: str, name: str) -> bool:
    """Whether the name stands anywhere but as the target of an assignment."""
    read = re.sub(rf"(?m)^\s*{name} [-+*]?= ", " ", text)
    return re.search(rf"(?<![A-Za-z_'.]){name}(?![A-Za-z_'])", read) is not None
