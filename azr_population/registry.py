"""Named strategies: what a config picks by its name in the field, or by the path of one's own.

A name with a dot is `module.function`: found in every process of a run, Ray's among them, and in
the folder that the command was started in.
"""

import importlib
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from azr_population.errors import UserError, did_you_mean, first_line

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Entry(Generic[F]):
    """One strategy: its function, its name and where it comes from."""

    name: str
    function: F
    reference: str

    @property
    def options(self) -> dict[str, Any]:
        """What a config may set of it, with the defaults: its parameters that have one."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.default is not p.empty}

    def refuse_unknown(self, key: str, given: Iterable[str]) -> None:
        """Raises UserError when `given` (the config's `key`) has an unknown option."""
        for option in given:
            if option not in self.options:
                known = ", ".join(self.options) or "none"
                raise UserError(f"{key}.{option}: {self.name} has no such option; it has: {known}")


class Registry(Generic[F]):
    """Strategies of one kind by name. `kind` is the config key that picks one, for messages;
    `made_by` names the decorator of a registry that holds more than functions, which are of the
    class `of`."""

    def __init__(self, kind: str, of: type | None = None, made_by: str = "") -> None:
        self.kind = kind
        self._of = of
        self._made_by = made_by
        self._entries: dict[str, Entry[F]] = {}

    def register(self, name: str, reference: str) -> Callable[[F], F]:
        """Decorator: files the function under `name` and returns it unchanged."""

        def file(function: F) -> F:
            if name in self._entries:
                raise ValueError(f"{self.kind}={name} is registered twice")
            self._entries[name] = Entry(name, function, reference)
            return function

        return file

    def find(self, name: str) -> Entry[F]:
        """The strategy called `name`, or the one at the path `module.function`. Raises UserError:
        there is none; the message lists the valid names."""
        if isinstance(name, str) and "." in name:
            return Entry(name, self._import(name), "a module of the user's")
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            hint = did_you_mean(name, self._entries)
            names = ", ".join(self._entries)
            raise UserError(
                f"{self.kind}={name} is unknown{hint}; choose one of: {names}, or give the path of "
                "yours: module.name"
            ) from None

    def _import(self, path: str) -> F:
        found = imported(self.kind, path)
        if self._of and not isinstance(found, self._of):
            raise UserError(
                f"{self.kind}={path} is no {self._of.__name__.lower()}; decorate it by "
                f"{self._made_by} (docs/extending.md)"
            )
        if not callable(found):
            raise UserError(f"{self.kind}={path} is no function and no class, but {found!r:.60}")
        return found

    def __iter__(self) -> Iterator[Entry[F]]:
        return iter(self._entries.values())

    def __contains__(self, name: object) -> bool:
        return name in self._entries


def imported(key: str, path: str) -> Any:
    """What is at `module.name`; `key` is the config's, for messages. Raises UserError: there is no
    such thing, or its module does not run."""
    module, _, name = path.rpartition(".")
    # A console script has the folder of the script there, and not the one it was started in.
    if (here := os.getcwd()) not in sys.path and "" not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever a module of the user's raises when it is run
        what = first_line(error)
        if not isinstance(error, (ImportError, AttributeError)):
            what = f"{type(error).__name__}: {what}"
        raise UserError(f"{key}={path} cannot be imported: {what}") from error


def import_modules(package: str, first: Iterable[str] = ()) -> list[str]:
    """Imports every module of a package, so that what they register is there: `first` in their
    order, and then the others by name. Modules whose name begins with `_` register nothing."""
    folder = importlib.import_module(package).__path__
    names = [m.name for m in pkgutil.iter_modules(folder) if not m.name.startswith("_")]
    ordered = [*first, *(name for name in names if name not in first)]
    for name in ordered:
        importlib.import_module(f"{package}.{name}")
    return ordered
