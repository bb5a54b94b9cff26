"""A child: compiles programs, calls their `f`, and writes down the results.

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
from .batch_safety import BUILTINS
from .program import Arguments, Compiled, arguments, compiled, describe, evaluated
from .region import Region

_HIDDEN_BUILTINS = ("input", "breakpoint", "exit", "quit", "help", "copyright", "credits")
_INTERNALS = ("_strptime", "time")  # the interpreter's C code imports these on behalf of a program
_MORE_PLACES = 2  # more runs if addresses may show: one bit of one goes unnoticed 1 in 8 times
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
        self.shared_builtins = {name: self.builtins[name] for name in BUILTINS}
        self.shared_builtins["__name__"] = self.builtins["__name__"]  # of a class's module
        self.shared_builtins["__build_class__"] = builtins.__build_class__
        self.prelude = self._executed(prelude) if prelude else {}

    def run(self, work: wire.SandboxWork, region: Region) -> None:
        """Makes the calls of a work; a frame for each goes to the region.

        Of several calls only those of batch-safe programs are made. A single call has the whole
        interpreter, and is always made in exactly the same way: its program may inspect everything
        and must not be able to distinguish two such calls.
        """
        gc.enable()
        self.region = region
        region.begin(0)
        alone = len(work.calls) == 1
        noise = [chance.heap_noise(True)] if alone and work.calls[0].again else []
        program = compiled(work, self.banned_names)
        done: Result = (program.status, program.text)
        failed = program.status != wire.OK
        for number, call in enumerate(work.calls):
            if not failed:
                region.begin(number)
                done = self._execute(program, call, alone)
                failed = work.stop_at_failure and done[0] != wire.OK
            region.put(*done)
            if call.kind == wire.SCRIPT:
                gc.collect()  # output of finalisers must not go to the next call
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
        calls = (wire.Call(wire.EXPRESSION, "[1], 'a'"), wire.Call(wire.LITERAL, "[2.5], 'b'")) * 4
        work = wire.SandboxWork("def f(x, y):\n    return [len(x), {y: (x, None, True)}]", calls)
        single = work._replace(calls=(wire.Call(wire.LITERAL, "[2.5], 'b'", True),))
        for each in [work, single] * 25:
            region = Region(1 << 16)
            self.run(wire.unpack(wire.pack(each, 1.0, 1.0)[wire.JOB.size :]), region)
            gc.disable()
            region.close()

    def _execute(self, program: Compiled, call: wire.Call, alone: bool) -> Result:
        """Makes one call: with the whole interpreter, or as a batch-safe one among many."""
        values = arguments(call, self.banned_names)
        if values.status != wire.OK:
            return values.status, values.text
        if alone:
            chance.enter(call.again)
        elif not (program.safety.safe and values.safe):
            return wire.ALONE, ""
        noise = [chance.heap_noise(alone or program.safety.hashes)] if call.again else []
        if call.again and program.safety.hashes:
            noise.append(chance.far_heap_noise())
        status, text = self._attempt(program, call, values, alone)
        if alone and call.again and status == wire.OK and chance.consumed():
            for world in range(2, chance.WORLDS):
                chance.enter(world)
                if self._attempt(program, call, values, alone) != (status, text):
                    return wire.ERROR, "it depends on the clock or on chance"
        if call.again and status == wire.OK and program.safety.may_show_addresses:
            for _ in range(_MORE_PLACES):
                noise.append(chance.heap_noise(program.safety.hashes))
                if self._attempt(program, call, values, alone) != (status, text):
                    return wire.ERROR, "it depends on where objects lie in memory"
        del noise
        if not alone and status == wire.MEMORY:
            return wire.ALONE, ""
        source = program.text + call.arguments
        if status == wire.OK and call.kind != wire.SCRIPT and chance.shows_address(text, source):
            return wire.NOT_LITERAL, "the output shows a memory address"
        return status, text

    def _attempt(
        self, program: Compiled, call: wire.Call, values: Arguments, alone: bool
    ) -> Result:
        namespace: dict[str, Any] = {
            "__builtins__": self.builtins if alone else self.shared_builtins
        }
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
