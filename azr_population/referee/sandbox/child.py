"""What one child does: compile the program, call its `f`, write down what came of it.

It runs under every limit from its first line on. It is not trusted: once the program runs, this
code and all it holds belong to the program. So the child knows nothing that would help it (no gold
answer, no other program, no earlier task) and what it writes down is only ever read as data.
"""

from __future__ import annotations

import ast
import builtins
import gc
import marshal
import re
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from . import literal, plain, wire
from .region import Region, Window

_HIDDEN_BUILTINS = ("input", "breakpoint", "exit", "quit", "help", "copyright", "credits")
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}")
_RANDOMNESS = frozenset(("random", "secrets"))
_CLOCK = frozenset(("now", "today", "utcnow"))  # with datetime; two runs may see the same second


class BannedImport(ImportError):
    """The program imported a module that is not on the list."""


class _Sink:
    """Stands where stdout was: takes everything, keeps nothing."""

    encoding = "utf-8"
    errors = "strict"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        return None

    def isatty(self) -> bool:
        return False


class _Printed(_Sink):
    """Keeps what is printed, up to a bound."""

    def __init__(self, room: int) -> None:
        self.parts: list[str] = []
        self.room = room

    def write(self, text: str) -> int:
        self.room -= len(text)
        if self.room < 0:
            raise literal.TooLarge("printed too much")
        self.parts.append(text)
        return len(text)


def prepare(modules: frozenset[str], banned_names: frozenset[str], max_output: int) -> Runner:
    """What the zygote sets up once for all its children."""
    sys.stdin = None
    sys.stdout = sys.stderr = _Sink()
    return Runner(modules, banned_names, max_output)


class Runner:
    """Runs jobs. One is made by the zygote and used once by each child."""

    def __init__(
        self, modules: frozenset[str], banned_names: frozenset[str], max_output: int
    ) -> None:
        self.modules = modules
        self.banned_names = banned_names
        self.max_output = max_output
        self.builtins = dict(vars(builtins))
        for name in _HIDDEN_BUILTINS:
            self.builtins.pop(name, None)
        self.builtins["__import__"] = self._guarded_import()
        self.plain_builtins = {name: self.builtins[name] for name in plain.BUILTINS}

    def _guarded_import(self) -> Callable[..., Any]:
        modules, real_import = self.modules, builtins.__import__

        def __import__(
            name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
        ) -> Any:
            if level == 0 and type(name) is str and name.partition(".")[0] in modules:
                return real_import(name, globals, locals, fromlist, 0)
            raise BannedImport(f"the referee does not allow the module {name!r}")

        return __import__

    def run_all(self, works: list[wire.Work], region: Region) -> None:
        """Run one work; or several, of which only the plain ones are executed."""
        if len(works) == 1:
            return self.run(works[0], region)
        first = 0
        whole, self.builtins = self.builtins, self.plain_builtins
        for work in works:
            self.run(work, Window(region, first, len(work.calls)), plain_only=True)
            first += len(work.calls)
        self.builtins = whole
        return None

    def run(self, work: wire.Work, region: Region | Window, plain_only: bool = False) -> None:
        """Compile, then make each call in a namespace of its own; frames go to the region."""
        region.begin(0)
        source = "\n".join((*work.imports, work.source)) if work.imports else work.source
        try:
            if work.banned or work.statements:
                from .screening import screen

                found = screen(source, work.banned, work.statements)
                if found:
                    region.put(wire.PROGRAM, wire.BANNED, found)
                    return
            code = compile(source, "<program>", "exec", dont_inherit=True)
        except MemoryError:
            region.put(wire.PROGRAM, wire.MEMORY)
            return
        except Exception as error:  # SyntaxError, ValueError (null bytes), RecursionError, ...
            region.put(wire.PROGRAM, wire.SYNTAX_ERROR, _describe(error))
            return
        names = _names(code)
        if "datetime" in names and not _CLOCK.isdisjoint(names):
            region.put(wire.PROGRAM, wire.BANNED, "reads the clock")
            return
        if not self.banned_names.isdisjoint(names):
            found = ", ".join(sorted(self.banned_names & names))
            region.put(wire.PROGRAM, wire.BANNED, found)
            return
        readers = {call: self._reader(call) for call in set(work.calls)}
        if plain_only and not (
            plain.is_plain(code)
            and all(
                plain.is_plain(reader) for _, reader in readers.values() if type(reader) is CodeType
            )
        ):
            region.put(wire.PROGRAM, wire.ALONE)
            return
        uncertain = not _RANDOMNESS.isdisjoint(names)
        gc.enable()
        for index, call in enumerate(work.calls):
            region.begin(index)
            if call.kind == wire.SCRIPT:
                self._script(index, code, call.arguments, region)
                continue
            self._call(index, code, readers[call], region, uncertain)

    def warm_up(self) -> None:
        """Run a program of our own a few times, in the zygote.

        The interpreter rewrites code as it gets warm; what is warm before the fork, a child need
        not copy the pages of.
        """
        calls = (wire.Call(wire.EXPRESSION, "[1], 'a'"), wire.Call(wire.LITERAL, "[2.5], 'b'")) * 4
        work = wire.Work("def f(x, y):\n    return [len(x), {y: (x, None, True)}]", calls)
        for _ in range(25):
            region = Region(1 << 16)
            self.run_all(wire.unpack(wire.pack([work], 1.0)[wire.JOB.size :]), region)
            gc.disable()
            region.close()

    def _reader(self, call: wire.Call) -> tuple[int, Any]:
        """How to get a call's arguments: (status, source of the failure) or (OK, code or text)."""
        text = call.arguments
        if call.kind == wire.SCRIPT:
            return wire.OK, None
        try:
            arguments = literal.parse_arguments(text)
        except literal.TooLarge as error:
            if call.kind == wire.LITERAL:
                return wire.INPUT_TOO_LARGE, str(error)
        except literal.NotLiteral as error:
            if call.kind == wire.LITERAL:
                return wire.INPUT_NOT_LITERAL, str(error)
        else:
            return wire.OK, marshal.dumps(arguments)  # type: ignore[arg-type]  # loads() makes them afresh for every call
        try:
            tree = ast.parse(f"f({text}\n)", "<input>", "eval")
            whole = isinstance(tree.body, ast.Call) and isinstance(tree.body.func, ast.Name)
            if not whole or tree.body.func.id != "f":  # type: ignore[attr-defined]
                return wire.BAD_INPUT, "not the arguments of one call"
            code = compile(tree, "<input>", "eval", dont_inherit=True)
        except Exception as error:
            return wire.BAD_INPUT, _describe(error)
        if not self.banned_names.isdisjoint(_names(code)):
            return wire.BAD_INPUT, "a banned name"
        return wire.OK, code

    def _script(self, index: int, code: CodeType, last: str, region: Region | Window) -> None:
        """Run a script; the output is the `str` of its last expression, or what it printed."""
        namespace: dict[str, Any] = {"__builtins__": self.builtins, "__name__": "program"}
        try:
            if last:
                exec(code, namespace)
                text = str(eval(last, namespace))
            else:
                sys.stdout = printed = _Printed(self.max_output)
                exec(code, namespace)
                text = "".join(printed.parts)
        except MemoryError:
            region.put(index, wire.MEMORY)
        except literal.TooLarge as error:
            region.put(index, wire.TOO_LARGE, str(error))
        except BaseException as error:
            region.put(index, wire.ERROR, _describe(error))
        else:
            fits = len(text) <= self.max_output
            region.put(index, wire.OK if fits else wire.TOO_LARGE, text if fits else "")

    def _call(
        self,
        index: int,
        code: CodeType,
        reader: tuple[int, Any],
        region: Region | Window,
        uncertain: bool,
    ) -> None:
        status, arguments = reader
        if status != wire.OK:
            region.put(index, status, arguments)
            return
        if uncertain:
            _reseed(index)
        # One dict for all calls: a copy would touch, and so make the kernel copy, the page of every
        # builtin. A program that alters it to tell its calls apart fails the last validation run.
        if "id" in self.builtins:  # a plain program has none
            self.builtins["id"] = _salted_id(index)
        namespace: dict[str, Any] = {"__builtins__": self.builtins, "__name__": "program"}
        try:
            exec(code, namespace)
            function = namespace.get("f")
            if function is None:
                region.put(index, wire.NO_FUNCTION)
                return
            if type(arguments) is bytes:
                positional, named = marshal.loads(arguments)
                output = function(*positional, **named)
            else:
                output = eval(arguments, namespace)
            text = literal.write(output, self.max_output)
        except MemoryError:
            region.put(index, wire.MEMORY)
        except literal.TooLarge as error:
            region.put(index, wire.TOO_LARGE, str(error))
        except literal.NotLiteral as error:
            region.put(index, wire.NOT_LITERAL, str(error))
        except BannedImport as error:
            region.put(index, wire.BANNED, str(error))
        except BaseException as error:
            region.put(index, wire.ERROR, _describe(error))
        else:
            if _ADDRESS.search(text):  # an address differs from process to process
                region.put(index, wire.NOT_LITERAL, "the output shows a memory address")
            else:
                region.put(index, wire.OK, text)


_type_name = type.__dict__["__name__"].__get__  # past a metaclass's own `__name__`


def _names(code: CodeType) -> set[str]:
    """All names that a code object and those inside it use: variables, attributes, imports."""
    names = {*code.co_names, *code.co_varnames, *code.co_freevars}
    for constant in code.co_consts:
        if type(constant) is CodeType:
            names |= _names(constant)
    return names


def _describe(error: BaseException) -> str:
    """`ZeroDivisionError: division by zero`, bounded; the message is the program's own text."""
    try:
        name = str(_type_name(type(error)))[:100]
        message = str(error)[:200]
    except BaseException:  # the program's own class may raise anything
        return "Exception"
    return f"{name}: {message}" if message else name


def _reseed(index: int) -> None:
    """Other random numbers in each call, the same in each run: chance shows as disagreement."""
    import random  # at the head, it would have every fork seed its generator afresh

    random.seed(index * 7919 + 17)
    source = random.Random(index * 104729 + 29)
    random._urandom = source.randbytes  # type: ignore[attr-defined]


def _salted_id(index: int, real_id: Callable[[object], int] = id) -> Callable[[object], int]:
    """`id` that still tells objects apart, but whose values differ from call to call."""
    salt = index << 48

    def id(obj: object, /) -> int:
        return real_id(obj) + salt

    return id
