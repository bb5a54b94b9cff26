"""Named strategies: functions that a config picks by the name they carry in the field."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from azr_population.errors import UserError

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
    """Strategies of one kind by name. `kind` is the config key that picks one, for messages."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
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
        """The strategy called `name`, or the one at the path `module.function`.

        A path is found in every process of a run, such as Ray's, without being registered there.

        Raises:
            UserError: there is none; the message lists the valid names.
        """
        if isinstance(name, str) and "." in name:
            return Entry(name, self._import(name), "a module of the user's")
        try:
            return self._entries[name]
        except (KeyError, TypeError):
            near = difflib.get_close_matches(str(name), self._entries, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            names = ", ".join(self._entries)
            raise UserError(
                f"{self.kind}={name} is unknown{hint}; choose one of: {names}"
            ) from None

    def _import(self, path: str) -> F:
        module, _, name = path.rpartition(".")
        try:
            function: F = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise UserError(f"{self.kind}={path} cannot be imported: {error}") from error
        return function

    def __iter__(self) -> Iterator[Entry[F]]:
        return iter(self._entries.values())
