"""Typed expressions over integers, lists of integers and strings."""

from dataclasses import dataclass, field
from random import Random

INT, LIST, STR = "int", "list", "str"
LETTERS = "abcde"


@dataclass
class Scope:
    """What can be read where, and what has not been read yet."""

    types: dict[str, str]
    unread: list[str] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    """Names that a running loop depends on: not to be changed."""

    def names(self, kind: str) -> list[str]:
        return [name for name, type in self.types.items() if type == kind]


class Expressions:
    """Draws expressions of a type that can be read in a scope; `depth` bounds their nesting."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

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
        forms = ["arithmetic"] * 5
        if lists:
            forms += ["reduce"] * 5 + ["element"] * 3 + ["count", "comprehension"]
        if texts:
            forms += ["length"] * 3 + ["letters"] * 3
        if ints:
            forms += ["choice", "bound"]
        form = rng.choice(forms)
        if form == "arithmetic":
            return self._arithmetic(scope, depth)
        if form == "reduce":
            function = rng.choices(("sum", "max", "min", "len"), (4, 4, 3, 3))[0]
            return f"{function}({self._list(scope, depth - 1 if rng.random() < 0.4 else 0)})"
        if form == "element":
            return (
                f"{self._name(LIST, scope)}[{rng.choices(('0', '-1', '1', '-2'), (4, 4, 2, 1))[0]}]"
            )
        if form == "count":
            return f"{self._name(LIST, scope)}.count({self._int(scope, 0)})"
        if form == "comprehension":
            over = self._name(LIST, scope)
            inner = Scope({"v": INT}, ["v"])
            return f"sum({self._arithmetic(inner, 1)} for v in {over})"
        if form == "length":
            return f"len({self._string(scope, depth - 1)})"
        if form == "letters":
            method = rng.choice(("count", "count", "find"))
            return f"{self._name(STR, scope)}.{method}({rng.choice(LETTERS)!r})"
        if form == "choice":
            condition = self._condition(scope)
            left, right = self._two(scope)
            return f"{left} if {condition} else {right}"
        left, right = self._two(scope)
        return f"{rng.choice(('max', 'min'))}({left}, {right})"

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
        if " " in left and not left.endswith(")"):
            left = f"({left})"
        operator = rng.choices(("+", "-", "*", "%", "//"), (9, 7, 5, 3, 2))[0]
        if operator in "%//":
            return f"{left} {operator} {rng.randint(2, 9 if operator == '%' else 4)}"
        if operator == "*":
            return f"{left} * {rng.randint(2, 5)}"
        right = self._int(scope, depth - 1 if rng.random() < 0.35 else 0)
        if right == left:
            right = str(rng.randint(1, 9))
        if " " in right and not right.endswith(")"):
            right = f"({right})"
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
        form = rng.choices(
            ("sorted", "reverse", "slice", "join", "more", "map", "filter", "twice", "pair"),
            (5, 5, 6, 3, 5, 9, 6, 1, 2),
        )[0]
        if form == "sorted":
            inner_text = self._list(scope, depth - 1, name)
            tail = ", reverse=True" if rng.random() < 0.15 else ""
            return f"sorted({inner_text}{tail})"
        if form == "reverse":
            return f"{name}[::-1]"
        if form == "slice":
            return f"{name}[{rng.choice(('1:', '1:', ':2', '2:', ':-1', ':3', '::2'))}]"
        if form == "join":
            return f"{name} + {self._list(scope, 0)}"
        if form == "more":
            return f"{name} + [{self._int(scope, depth - 1)}]"
        if form == "map":
            inner = Scope({"v": INT, **{n: INT for n in scope.names(INT)}}, ["v"])
            return f"[{self._arithmetic(inner, 1)} for v in {name}]"
        if form == "filter":
            inner = Scope({"v": INT, **{n: INT for n in scope.names(INT)}}, ["v"])
            body = "v" if rng.random() < 0.7 else self._arithmetic(inner, 1)
            return f"[{body} for v in {name} if {self._condition(inner, 'v')}]"
        if form == "twice":
            return f"{name} * 2"
        return f"[{self._int(scope, 1)}, {self._int(scope, depth - 1)}]"

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
        form = rng.choices(
            ("reverse", "add", "slice", "replace", "upper", "twice", "sorted", "filter", "end"),
            (5, 7, 6, 5, 3, 2, 3, 3, 3),
        )[0]
        if form == "reverse":
            return f"{name}[::-1]"
        if form == "add":
            other = self._string(scope, depth - 1) if rng.random() < 0.5 else self._letter(scope)
            return f"{name} + {other}" if rng.random() < 0.65 else f"{other} + {name}"
        if form == "slice":
            return f"{name}[{rng.choice(('1:', '1:', ':2', '2:', ':-1', ':3', '::2'))}]"
        if form == "replace":
            old, new = rng.sample(LETTERS, 2)
            return f"{name}.replace({old!r}, {rng.choice((new, new, new * 2, ''))!r})"
        if form == "upper":
            return f"{name}.upper()"
        if form == "twice":
            return f"{name} * 2"
        if form == "sorted":
            return f"''.join(sorted({name}))"
        if form == "filter":
            operator, bound = rng.choice(("!=", ">", "<")), rng.choice("bcd")
            return f"''.join(c for c in {name} if c {operator} {bound!r})"
        return f"{name}[{rng.choice(('0', '-1'))}]"

    def _letter(self, scope: Scope) -> str:
        """A short string: mostly a letter, or the loop's own."""
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
