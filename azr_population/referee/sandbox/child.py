"""A child: compiles a program, calls its `f`, and writes down the result.

It runs under every limit from its first line on. It is not trusted: a running program controls this
code and all its data. So the child has nothing that would help it (no gold answer, nothing of other
tasks), and what it writes is only ever read as data.
"""

import builtins
import gc
import marshal
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from . import chance, literal, wire
from .program import Arguments, Compiled, arguments, compiled, describe, evaluated
from .region import Region

_HIDDEN_BUILTINS = ("input", "breakpoint", "exit", "quit", "help", "copyright", "credits")
_INTERNALS = ("_strptime", "time")  # the interpreter's C code imports these on behalf of a program
Result = tuple[int, str]
"""A status and its text."""


class BannedImport(ImportError):
    """The program imported a module that is not on the list."""


class _Sink:
    """Replaces stdout and discards everything."""

    encoding = "utf-8"
    errors = "strict"

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        return None

    def isatty(self) -> bool:
        return False


class _Printed(_Sink):
    """Keeps printed text up to a limit."""

    def __init__(self, room: int) -> None:
        self.parts: list[str] = []
        self.room = room

    def write(self, text: str) -> int:
        self.room -= len(text)
        if self.room < 0:
            raise literal.TooLarge("printed too much")
        self.parts.append(text)
        return len(text)


class Runner:
    """Runs jobs. The zygote makes it; each child uses its own copy."""

    def __init__(
        self,
        modules: frozenset[str],
        banned_names: frozenset[str],
        max_output: int,
        prelude: str = "",
    ) -> None:
        sys.stdin = None
        sys.stdout = sys.stderr = self.sink = _Sink()
        self.banned_names = banned_names
        self.max_output = max_output
        self.builtins = dict(vars(builtins))
        for name in _HIDDEN_BUILTINS:
            self.builtins.pop(name, None)
        self.builtins["__import__"] = _guarded_import(modules)
        self.builtins["id"] = chance.salted_id
        self.prelude = self._executed(prelude) if prelude else {}

    def run(self, work: wire.SandboxWork, region: Region) -> None:
        """Makes the call of a work; its frame goes to the region.

        It is always made in exactly the same way: its program may inspect everything and must not
        be able to distinguish two such calls.
        """
        gc.enable()
        self.region = region
        (call,) = work.calls
        noise = chance.heap_noise() if call.again else []
        program = compiled(work, self.banned_names)
        failed = program.status != wire.OK
        region.put(*((program.status, program.text) if failed else self._execute(program, call)))
        del noise

    def _executed(self, prelude: str) -> dict[str, Any]:
        """The names that the prelude defines for scripts."""
        scope = {"__builtins__": self.builtins, "__name__": "prelude", "time_part": self._time_part}
        exec(compile(prelude, "<prelude>", "exec", dont_inherit=True), scope)
        return {name: value for name, value in scope.items() if not name.startswith("__")}

    def _time_part(self, begins: bool) -> None:
        self.region.time_part(begins)

    def warm_up(self) -> None:
        """Runs a program of ours a few times in the zygote.

        The interpreter specialises code at run time; children need not copy the pages of code that
        was specialised before the fork.
        """
        source = "def f(x, y):\n    return [len(x), {y: (x, None, True)}]"
        calls = (
            wire.Call(wire.EXPRESSION, "[1], 'a'"),
            wire.Call(wire.LITERAL, "[2.5], 'b'"),
            wire.Call(wire.LITERAL, "[2.5], 'b'", True),
        )
        for call in calls * 50:
            region = Region(1 << 16)
            job = wire.pack(wire.SandboxWork(source, (call,)), 1.0)
            self.run(wire.unpack(job[wire.JOB.size :]), region)
            gc.disable()
            region.close()

    def _execute(self, program: Compiled, call: wire.Call) -> Result:
        """Makes one call."""
        values = arguments(call, self.banned_names)
        if values.status != wire.OK:
            return values.status, values.text
        chance.enter(call.again)
        noise = chance.heap_noise() if call.again else []
        status, text = self._attempt(program, call, values)
        if call.again and status == wire.OK and chance.consumed():
            for world in range(2, chance.WORLDS):
                chance.enter(world)
                if self._attempt(program, call, values) != (status, text):
                    return wire.ERROR, "it depends on the clock or on chance"
        del noise
        source = program.text + call.arguments
        if status == wire.OK and call.kind != wire.SCRIPT and chance.shows_address(text, source):
            return wire.NOT_LITERAL, "the output shows a memory address"
        return status, text

    def _attempt(self, program: Compiled, call: wire.Call, values: Arguments) -> Result:
        namespace: dict[str, Any] = {"__builtins__": self.builtins}
        if call.again:  # so that an output that counts the globals is not steady
            unused = "returns"
            while unused in program.text:
                unused += "_"
            namespace[unused] = None
        assert program.code is not None
        try:
            if call.kind == wire.SCRIPT:
                return self._script(program.code, values, namespace)
            return self._call(program.code, call.kind, values, namespace)
        except MemoryError:
            return wire.MEMORY, ""
        except literal.TooLarge as error:
            return wire.TOO_LARGE, str(error)
        except literal.NotLiteral as error:
            return wire.NOT_LITERAL, str(error)
        except BannedImport as error:
            return wire.BANNED, str(error)
        except BaseException as error:
            return wire.ERROR, describe(error)

    def _call(
        self, code: CodeType, kind: int, values: Arguments, namespace: dict[str, Any]
    ) -> Result:
        exec(code, namespace)
        if values.code is None:
            positional, named = marshal.loads(values.values)
        else:
            positional, named = evaluated(values.code, namespace)
        if kind == wire.ARGUMENTS:
            return wire.OK, literal.write_arguments(positional, named)
        function = namespace.get("f")
        if function is None:
            return wire.NO_FUNCTION, ""
        output = function(*positional, **named)
        return wire.OK, literal.write(output, min(self.max_output, literal.MAX_CHARS))

    def _script(self, code: CodeType, values: Arguments, namespace: dict[str, Any]) -> Result:
        """Runs a script; its output is the `str` of its last expression, or what it printed."""
        namespace |= self.prelude
        try:
            if values.code is not None:
                exec(code, namespace)
                text = str(eval(values.code, namespace))
            else:
                sys.stdout = printed = _Printed(self.max_output)
                exec(code, namespace)
                text = "".join(printed.parts)
        finally:
            sys.stdout = self.sink
        return (wire.OK, text) if len(text) <= self.max_output else (wire.TOO_LARGE, "")


def _guarded_import(modules: frozenset[str]) -> Callable[..., Any]:
    real_import = builtins.__import__

    def __import__(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if level == 0 and type(name) is str:
            internal = name in _INTERNALS and type(fromlist) is list  # as PyImport_Import calls it
            if internal or name.partition(".")[0] in modules:
                return real_import(name, globals, locals, fromlist, 0)
        raise BannedImport(f"the referee does not allow the module {name!r}")

    return __import__
