"""Patches: what an upstream project needs changed at run time, and nothing taken from it.

A patch names the symbol it replaces and the digest of the source that it expects there. Where the
source is another, the patch is refused with one line: upstream has moved on, and somebody has to
look. Each patch is applied at most once per process and can be undone.
"""

import functools
import hashlib
import importlib
import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from azr_population.errors import UserError


@dataclass(frozen=True)
class Patch:
    """A patch: one upstream defect and what closes it."""

    name: str
    """Short and unique, e.g. `azr-output-prediction`."""
    symbol: str
    """What is replaced: `package.module:Class.attribute`. A name that the module does not have is
    added to it (to shadow a builtin there); the digest is then that of `source_of`."""
    digest: str
    """The first 16 hex digits of the SHA-256 of the expected source, dedented."""
    replace: Callable[[Any], Any]
    """Makes the new object from the old one (None where the name is added)."""
    source_of: tuple[str, ...] = ()
    """Other symbols of the module whose sources are digested in place of the replaced one's."""
    upstream: str = "absolute_zero_reasoner a82124e"
    """The project and the versions whose source has the digest."""


def around(name: str, symbol: str, digest: str) -> Callable[[Callable[..., Any]], Patch]:
    """Decorator that makes a patch of a function: it is called in the symbol's place, with the
    original before the arguments."""

    def made(function: Callable[..., Any]) -> Patch:
        def replace(original: Any) -> Any:
            @functools.wraps(original)
            def call(*args: Any, **kwargs: Any) -> Any:
                return function(original, *args, **kwargs)

            return call

        return Patch(name, symbol, digest, replace)

    return made


_applied: dict[str, tuple[Any, str, Any]] = {}
_ABSENT = object()


def apply(patches: Sequence[Patch]) -> list[str]:
    """Apply all patches, or none: sources are checked first. Returns the names newly applied.
    Raises UserError when a module or symbol is missing or a source is not the expected one."""
    missing = [patch for patch in patches if patch.name not in _applied]
    places = [_checked(patch) for patch in missing]
    for patch, (owner, attribute, old) in zip(missing, places, strict=True):
        new = patch.replace(None if old is _ABSENT else old)
        if isinstance(old, staticmethod) and not isinstance(new, staticmethod):
            new = staticmethod(new)
        setattr(owner, attribute, new)
        _applied[patch.name] = (owner, attribute, old)
    return [patch.name for patch in missing]


def undo(patches: Sequence[Patch]) -> list[str]:
    """Put back what was there, in reverse order. Returns the names undone."""
    undone = []
    for patch in reversed(patches):
        if patch.name in _applied:
            owner, attribute, old = _applied.pop(patch.name)
            if old is _ABSENT:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, old)
            undone.append(patch.name)
    return undone


def digest(module_name: str, symbols: Sequence[str]) -> str:
    """The digest of the sources of a module's symbols, as `Patch.digest` expects it."""
    module = importlib.import_module(module_name)
    sha256 = hashlib.sha256()
    for symbol in symbols:
        value: Any = module
        for part in symbol.split("."):
            value = getattr(value, part)
        sha256.update(textwrap.dedent(inspect.getsource(value)).encode())
    return sha256.hexdigest()[:16]


def _checked(patch: Patch) -> tuple[Any, str, Any]:
    """Where the patch goes: (owner, attribute, what is there now)."""
    module_name, _, path = patch.symbol.partition(":")
    *owners, attribute = path.split(".")
    try:
        owner: Any = importlib.import_module(module_name)
        for part in owners:
            owner = getattr(owner, part)
        old = vars(owner).get(attribute, _ABSENT)
        if old is _ABSENT and not patch.source_of:
            raise AttributeError(f"{patch.symbol} is not there")
        actual = digest(module_name, patch.source_of or (path,))
    except (ImportError, AttributeError, OSError, TypeError) as error:
        raise UserError(f"patch {patch.name}: {patch.upstream}: {error}") from error
    if actual != patch.digest:
        raise UserError(
            f"patch {patch.name}: the source of {patch.symbol} has digest {actual}, expected "
            f"{patch.digest}: use {patch.upstream}, or leave this patch out"
        )
    return owner, attribute, old
