"""Which versions of which packages are here: what a run and its messages tell."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed(package: str) -> str | None:
    """The version of an installed distribution, None where there is none of this name."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
