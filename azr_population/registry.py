"""Registries: strategies that a config names: ours, those of installed packages, or a user's own.

A name with a dot is `module.function`. It is found in every process of a run, Ray's included, and
in the folder in which the command was started. Importing it runs its code, and the name may come
from somebody else's run directory. So nothing is imported before `trust` has been called: for the
overrides that the user typed, and by `--trust` for any. What an installed package offers as an
entry point has a name without a dot; it needs no trust beyond the one of installing it.
"""

import functools
import importlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from azr_population.errors import UserError, did_you_mean, first_line

F = TypeVar("F", bound=Callable[..., Any])


class Registry(dict[str, F]):
    """Strategies of one kind by name. `kind` is the config key that selects one. If they are
    objects rather than functions, `of` is their class and `made_by` the decorator that makes
    them. Installed packages add theirs as entry points of the group `azr_population.<group>`."""

    def __init__(
        self, kind: str, of: type | None = None, made_by: str = "", group: str = ""
    ) -> None:
        super().__init__()
        self.kind = kind
        self._of = of
        self._made_by = made_by
        self._group = group

    def register(self, name: str, source: str) -> Callable[[F], F]:
        """Decorator: files the function under `name` and returns it unchanged. `source` tells
        readers of the code where the strategy comes from."""

        def file(function: F) -> F:
            if name in self:
                raise ValueError(f"{self.kind}={name} is registered twice")
            self[name] = function
            return function

        return file

    def find(self, name: str) -> F:
        """The strategy called `name`, the one that an installed package has under it, or the one at
        the path `module.function`. Raises UserError: there is none; the message lists the valid
        names."""
        if isinstance(name, str) and "." in name:
            return self._checked(name, imported(self.kind, name))
        try:
            return self[name]
        except (KeyError, TypeError):
            installed = self.installed()
            if isinstance(name, str) and name in installed:
                with own_code(self.kind, name):
                    return self._checked(name, installed[name].load())
            names = [*self, *installed]
            choice = f"choose one of: {', '.join(names)}, or give" if names else "give"
            raise UserError(
                f"{self.kind}={name} is unknown{did_you_mean(name, names)}; {choice} the path of "
                "yours: module.name",
                key=self.kind,
            ) from None

    def installed(self) -> dict[str, EntryPoint]:
        """The entry points of installed packages, by name."""
        points = entry_points(group=f"azr_population.{self._group}") if self._group else ()
        return {point.name: point for point in points}

    def _checked(self, path: str, value: Any) -> F:
        if self._of and not isinstance(value, self._of):
            raise UserError(
                f"{self.kind}={path} is not of type {self._of.__name__}; decorate it with "
                f"{self._made_by} (docs/extending.md)",
                key=self.kind,
            )
        if not callable(value):
            raise UserError(
                f"{self.kind}={path} is neither a function nor a class, but {value!r:.60}",
                key=self.kind,
            )
        if self._of:  # an operator, which has a function
            return cast(F, replace(value, function=self.contained(path, value.function)))
        return cast(F, value) if inspect.isclass(value) else self.contained(path, value)

    def contained(self, path: str, function: Any, raises: bool = False) -> F:
        """The user's function, called inside `own_code`; with `raises` exceptions of its own pass
        through."""

        @functools.wraps(function)
        def call(*values: Any, **options: Any) -> Any:
            with own_code(self.kind, path, function, SystemExit if raises else _FAILURES):
                return function(*values, **options)

        return cast(F, call)


_SETTINGS = (
    ("sys", "getrecursionlimit", "setrecursionlimit"),
    ("os", "getcwd", "chdir"),
    ("numpy", "geterr", "seterr"),
    ("torch", "get_default_dtype", "set_default_dtype"),
    ("torch", "get_num_threads", "set_num_threads"),
    ("torch", "is_grad_enabled", "set_grad_enabled"),
)
"""Module, reader and setter of what code may change for the whole process."""
_FAILURES = (Exception, SystemExit)
"""What the user's code may raise."""


@contextmanager
def _contained(name: str) -> Iterator[None]:
    """Inside, the user's code runs; afterwards `_SETTINGS` and the standard streams are as before.
    Raises UserError: it closed files that it had not opened."""
    functions = [
        (getattr(module, read), getattr(module, write))
        for module_name, read, write in _SETTINGS
        if (module := sys.modules.get(module_name))
    ]
    settings = []
    for read, write in functions:
        with suppress(FileNotFoundError):  # the working directory has been removed
            settings.append((read, write, read()))
    streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    streams = {name: stream for name, stream in streams.items() if not _is_closed(stream)}
    probes = _probes()
    files = [number for number in (1, 2) if _identity(number)]
    try:
        yield
    finally:
        for read, write, before in settings:
            if read() != before:
                write(**before) if isinstance(before, dict) else write(before)
        vars(sys).update(streams)
        lost = [number for number in files if not _identity(number)]
        for number, identity in probes.items():
            if _identity(number) == identity:
                os.close(number)
            else:  # the number may be that of a file of the user's by now
                lost.append(number)
    closed = [f"sys.{stream}" for stream, file in streams.items() if _is_closed(file)]
    if closed := [*closed, *(f"descriptor {number}" for number in lost)]:
        raise UserError(
            f"{name} closes files that it has not opened ({', '.join(closed)}); close only files "
            "of your own",
            key=name.partition("=")[0],
        )


def _is_closed(stream: Any) -> bool:
    return stream is None or getattr(stream, "closed", False)


def _probes() -> dict[int, tuple[int, int] | None]:
    """Pipes that are open while the user's code runs, with the lowest free descriptors: code that
    closes descriptors by their numbers closes these too. Fewer where no descriptors are left."""
    probes: dict[int, tuple[int, int] | None] = {}
    with suppress(OSError):
        for _ in range(2):
            probes |= {number: _identity(number) for number in os.pipe()}
    return probes


def _identity(descriptor: int) -> tuple[int, int] | None:
    """The device and number of an open file; None if it is closed."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def own_code(
    key: str,
    path: str,
    function: Any = None,
    failures: type[BaseException] | tuple[type[BaseException], ...] = _FAILURES,
) -> Iterator[None]:
    """Inside, the user's code at this path runs `_contained`, and what it raises of `failures`,
    SystemExit too, becomes a UserError with the key, file and line; those of `function` if it could
    not even be called."""
    try:
        with _contained(f"{key}={path}"):
            yield
    except UserError:
        raise
    except failures as error:  # of any kind: it is the user's own code
        frames = traceback.extract_tb(error.__traceback__)
        code = getattr(function, "__code__", None)
        file, line = frames[-1].filename, frames[-1].lineno
        if code and all(frame.filename != code.co_filename for frame in frames):
            file, line = code.co_filename, code.co_firstlineno
        raise UserError(
            f"{key}={path} failed in {file}, line {line}: {type(error).__name__}: "
            f"{first_line(error)}",
            key=key,
        ) from error


def finite_number(value: Any) -> float | None:
    """The result of a user's code as a float: a number, numpy's and a tensor of one element too.
    None for anything else, and from 1e100 on, whose square overflows."""
    try:
        value = value.item() if hasattr(value, "item") else value
    except (RuntimeError, ValueError):  # a tensor or array of several elements
        return None
    sound = isinstance(value, (int, float)) and abs(value) < 1e100
    return float(value) if sound else None


_trusted: set[str] = set()
EVERYTHING = "*"


def trust(typed: Any) -> None:
    """Lets this process import the dotted names in `typed`: text, or a configuration as nested
    models, mappings and sequences; `EVERYTHING` stands for all."""
    _trusted.update(_names(typed))


def trusted(path: str) -> bool:
    """Whether the user typed this dotted name, or trusts everything."""
    return path in _trusted or EVERYTHING in _trusted


def _names(typed: Any) -> Iterator[str]:
    if isinstance(typed, str):  # operators and loggers may be joined: a.b+c.d
        yield from [EVERYTHING] if typed == EVERYTHING else re.findall(r"[\w.]*\.[\w.]*", typed)
    elif isinstance(typed, Mapping):
        yield from (name for pair in typed.items() for part in pair for name in _names(part))
    elif isinstance(typed, (list, tuple)):
        yield from (name for part in typed for name in _names(part))
    elif isinstance(typed, BaseModel) or is_dataclass(typed):
        yield from _names(vars(typed))


def imported(key: str, path: str) -> Any:
    """The object at `module.name`; `key` is the config's, for messages. Raises UserError: there is
    no such thing, or its module does not run."""
    module, _, name = path.rpartition(".")
    if not trusted(path):
        raise UserError(
            f"{key}={path} is custom code that you have not typed here, so it is not run; use "
            f"azr-population --trust COMMAND if you trust it, or type {key}={path}",
            key=key,
        )
    # A console script has the folder of the script there, and not the one it was started in.
    if "" not in sys.path and (here := os.getcwd()) not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()
    with own_code(key, path):
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, SyntaxError) as error:
            message = f"{key}={path} cannot be imported: {first_line(error)}"
            raise UserError(message, key=key) from error
