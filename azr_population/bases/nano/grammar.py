"""A typed grammar of small Python functions `f` over integers, lists of integers and strings.

`Grammar(rng).program(level)` writes one program; `level` is the number of statements before the
return (0-3, more is allowed). Everything it can write ends: loops run over values that they do not
change or over short ranges, and every `while` moves towards its bound by a positive constant. Names
tell types (`n, m, k` integers, `a, b` lists, `s, t` strings, `x, y, z` locals), because a base of a
million parameters has to be able to track them. Not covered: functions in functions, classes,
dictionaries, floats, recursion, exceptions, imports.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

INT, LIST, STR = "int", "list", "str"
LETTERS = "abcde"
_LOCALS = "xyzw"
ARGUMENTS = {INT: "nmk", LIST: "ab", STR: "st"}
_SLICES = ("1:", "1:", ":2", "2:", ":-1", ":3", "::2")

Form = str | Callable[[], str]
"""A text, or a function that draws one."""


@dataclass
class Scope:
    """Variables by type, and those that have not been read yet."""

    types: dict[str, str]
    unread: list[str] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    """Names that a running loop depends on: not to be changed."""

    def names(self, kind: str, changeable: bool = False) -> list[str]:
        """The names of this type; with `changeable` those that are not fixed."""
        fixed = self.fixed if changeable else ()
        return [name for name, type in self.types.items() if type == kind and name not in fixed]

    def element(self) -> "Scope":
        """Inside a comprehension over a list: its variable `v`, and the integers."""
        return Scope({"v": INT, **dict.fromkeys(self.names(INT), INT)}, ["v"])


class Written(NamedTuple):
    """A program and the types of its parameters, in order."""

    source: str
    parameters: tuple[str, ...]


class Grammar:
    """Draws programs and arguments from one generator, so that a seed gives the same ones. The
    `depth` of an expression bounds its nesting."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

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

    # -- values -------------------------------------------------------------------------------

    def _value(self, kind: str) -> object:
        rng = self.rng
        if kind == INT:
            return self._integer()
        size = rng.choices((1, 2, 3, 4, 5), (1, 3, 5, 4, 2))[0]
        if kind == LIST:
            return [self._integer() for _ in range(size)]
        return "".join(rng.choice(LETTERS) for _ in range(size))

    def _integer(self) -> int:
        draw = self.rng.random()
        low, high = (0, 10) if draw < 0.80 else (10, 21) if draw < 0.92 else (-9, 0)
        return self.rng.randrange(low, high)

    def _pick(self, *forms: tuple[int, Form]) -> str:
        """One of the forms, by weight."""
        weights, texts = zip(*forms, strict=True)
        form = self.rng.choices(texts, weights)[0]
        return form if isinstance(form, str) else form()

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

    # -- expressions --------------------------------------------------------------------------

    def _expression(self, kind: str, scope: Scope, depth: int) -> str:
        return {INT: self._int, LIST: self._list, STR: self._string}[kind](scope, depth)

    def _name(self, kind: str, scope: Scope, prefer: str | None = None) -> str | None:
        """A name of this type, rather one that has not been read yet."""
        names = scope.names(kind)
        if not names:
            return None
        if prefer in names and self.rng.random() < 0.7:
            return prefer
        unread = [name for name in scope.unread if name in names]
        name = self.rng.choice(unread if unread and self.rng.random() < 0.75 else names)
        if name in scope.unread:
            scope.unread.remove(name)
        return name

    def _int(self, scope: Scope, depth: int) -> str:
        rng = self.rng
        lists, texts, ints = scope.names(LIST), scope.names(STR), scope.names(INT)
        if depth <= 0:
            draw = rng.random()
            if ints and draw < 0.72:
                return self._name(INT, scope) or "1"
            if draw < 0.86 and (lists or texts):
                kind = rng.choice([LIST] * bool(lists) + [STR] * bool(texts))
                return f"len({self._name(kind, scope)})"
            return str(rng.randint(1, 9))

        def comprehension() -> str:
            over = self._name(LIST, scope)
            return f"sum({self._arithmetic(Scope({'v': INT}, ['v']), 1)} for v in {over})"

        def letters() -> str:
            method = rng.choice(("count", "count", "find"))
            return f"{self._name(STR, scope)}.{method}({rng.choice(LETTERS)!r})"

        def choice() -> str:
            condition = self._condition(scope)
            left, right = self._two(scope)
            return f"{left} if {condition} else {right}"

        def bound() -> str:
            left, right = self._two(scope)
            return f"{rng.choice(('max', 'min'))}({left}, {right})"

        forms: list[Callable[[], str]] = [lambda: self._arithmetic(scope, depth)] * 5
        if lists:
            forms += [lambda: self._reduction(scope, depth)] * 5
            forms += [lambda: f"{self._name(LIST, scope)}[{self._place()}]"] * 3
            forms += [lambda: f"{self._name(LIST, scope)}.count({self._int(scope, 0)})"]
            forms += [comprehension]
        if texts:
            forms += [lambda: f"len({self._string(scope, depth - 1)})"] * 3 + [letters] * 3
        if ints:
            forms += [choice, bound]
        return rng.choice(forms)()

    def _reduction(self, scope: Scope, depth: int) -> str:
        function = self.rng.choices(("sum", "max", "min", "len"), (4, 4, 3, 3))[0]
        return f"{function}({self._list(scope, depth - 1 if self.rng.random() < 0.4 else 0)})"

    def _place(self) -> str:
        return self.rng.choices(("0", "-1", "1", "-2"), (4, 4, 2, 1))[0]

    def _two(self, scope: Scope) -> tuple[str, str]:
        """Two different simple integers, the first one a name if there is one."""
        left = self._name(INT, scope) or self._int(scope, 0)
        right = self._int(scope, 0)
        return left, right if right != left else str(self.rng.randint(1, 9))

    def _arithmetic(self, scope: Scope, depth: int) -> str:
        rng = self.rng
        left = self._int(scope, depth - 1)
        if left.isdigit() and scope.names(INT):
            left = self._name(INT, scope) or left
        left = _bracketed(left)
        operator = rng.choices(("+", "-", "*", "%", "//"), (9, 7, 5, 3, 2))[0]
        if operator in "%//*":
            return f"{left} {operator} {rng.randint(2, {'%': 9, '//': 4, '*': 5}[operator])}"
        right = self._int(scope, depth - 1 if rng.random() < 0.35 else 0)
        right = str(rng.randint(1, 9)) if right == left else _bracketed(right)
        return f"{left} {operator} {right}"

    def _list(self, scope: Scope, depth: int, prefer: str | None = None) -> str:
        rng = self.rng
        name = self._name(LIST, scope, prefer)
        if name is None:
            if scope.names(STR) and rng.random() < 0.6:
                text = self._name(STR, scope)
                return f"[{text}.count(c) for c in {text}]"
            if rng.random() < 0.5:
                return f"[{self._int(scope, 0)}, {self._int(scope, 1)}]"
            inner = Scope({**scope.types, "i": INT}, [*scope.unread, "i"])
            body = self._arithmetic(inner, 1)
            scope.unread = [unread for unread in inner.unread if unread != "i"]
            return f"[{body} for i in range({rng.randint(2, 4)})]"
        if depth <= 0:
            return name

        def in_order() -> str:
            inside = self._list(scope, depth - 1, name)
            return f"sorted({inside}{', reverse=True' if rng.random() < 0.15 else ''})"

        def filtered() -> str:
            value = "v" if rng.random() < 0.7 else self._arithmetic(scope.element(), 1)
            return f"[{value} for v in {name} if {self._condition(scope.element(), 'v')}]"

        return self._pick(
            (5, in_order),
            (5, f"{name}[::-1]"),
            (6, lambda: f"{name}[{rng.choice(_SLICES)}]"),
            (3, lambda: f"{name} + {self._list(scope, 0)}"),
            (5, lambda: f"{name} + [{self._int(scope, depth - 1)}]"),
            (9, lambda: f"[{self._arithmetic(scope.element(), 1)} for v in {name}]"),
            (6, filtered),
            (1, f"{name} * 2"),
            (2, lambda: f"[{self._int(scope, 1)}, {self._int(scope, depth - 1)}]"),
        )

    def _string(self, scope: Scope, depth: int, prefer: str | None = None) -> str:
        rng = self.rng
        name = self._name(STR, scope, prefer)
        if name is None:
            if scope.names(INT) and rng.random() < 0.6:
                form = rng.choice(("{l!r} * ({i} % 4)", "str({i})", "{l!r} + str({i})"))
                return form.format(l=rng.choice(LETTERS), i=self._name(INT, scope))
            return f"str({self._int(scope, 1)})"
        if depth <= 0:
            return name

        def sum_of_two() -> str:
            other = self._string(scope, depth - 1) if rng.random() < 0.5 else self._letter(scope)
            return f"{name} + {other}" if rng.random() < 0.65 else f"{other} + {name}"

        def replaced() -> str:
            old, new = rng.sample(LETTERS, 2)
            return f"{name}.replace({old!r}, {rng.choice((new, new, new * 2, ''))!r})"

        def filtered() -> str:
            operator, bound = rng.choice(("!=", ">", "<")), rng.choice("bcd")
            return f"''.join(c for c in {name} if c {operator} {bound!r})"

        return self._pick(
            (5, f"{name}[::-1]"),
            (7, sum_of_two),
            (6, lambda: f"{name}[{rng.choice(_SLICES)}]"),
            (5, replaced),
            (3, f"{name}.upper()"),
            (2, f"{name} * 2"),
            (3, f"''.join(sorted({name}))"),
            (3, filtered),
            (3, lambda: f"{name}[{rng.choice(('0', '-1'))}]"),
        )

    def _letter(self, scope: Scope) -> str:
        """A short string: mostly a letter, or the loop's variable."""
        rng = self.rng
        if "c" in scope.types and rng.random() < 0.7:
            return rng.choices(("c", "c.upper()", "c * 2"), (6, 1, 2))[0]
        for loop in ("v", "i"):
            if loop in scope.types and rng.random() < 0.6:
                return f"str({loop})"
        texts = scope.names(STR)
        if texts and rng.random() < 0.3:
            name = self._name(STR, scope)
            return f"{name}[{rng.choice(('0', '-1'))}]"
        return repr(rng.choice(LETTERS))

    def _condition(self, scope: Scope, prefer: str | None = None) -> str:
        rng = self.rng
        kinds = [kind for kind in (INT, LIST, STR) if scope.names(kind)]
        kind = scope.types[prefer] if prefer else rng.choice(kinds)
        name = prefer or self._name(kind, scope)
        if name in scope.unread:
            scope.unread.remove(name)
        if kind == INT:
            draw = rng.random()
            others = [other for other in scope.names(INT) if other != name]
            if draw < 0.30:
                return f"{name} % {rng.choice((2, 2, 2, 3))} == {rng.choice((0, 0, 1))}"
            if others and draw < 0.5:
                return f"{name} {rng.choice('<>')} {rng.choice(others)}"
            return f"{name} {rng.choice(('<', '>', '>', '!='))} {rng.randint(1, 8)}"
        if kind == LIST:
            return rng.choice(
                (
                    f"len({name}) > {rng.randint(2, 4)}",
                    f"{name}[0] > {rng.randint(1, 7)}",
                    f"{name}[0] < {name}[-1]",
                    f"sum({name}) > {rng.randint(5, 20)}",
                    f"{rng.randint(0, 9)} in {name}",
                )
            )
        if prefer:
            return f"{name} {rng.choice(('==', '!=', '>', '<'))} {rng.choice('bcd')!r}"
        return rng.choice(
            (
                f"{rng.choice(LETTERS)!r} in {name}",
                f"len({name}) > {rng.randint(2, 4)}",
                f"{name}[0] == {name}[-1]",
                f"{name}[0] {rng.choice(('==', '!=', '<'))} {rng.choice(LETTERS)!r}",
            )
        )


def reads(text: str, name: str) -> bool:
    """Whether the name stands anywhere but as the target of an assignment."""
    read = re.sub(rf"(?m)^\s*{name} [-+*]?= ", " ", text)
    return re.search(rf"(?<![A-Za-z_'.]){name}(?![A-Za-z_'])", read) is not None


def _bracketed(text: str) -> str:
    return f"({text})" if " " in text and not text.endswith(")") else text
