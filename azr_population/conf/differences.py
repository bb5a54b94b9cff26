"""Which keys two configurations disagree about, for whoever must refuse or explain it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omegaconf import OmegaConf

from azr_population.conf.schema import Config

FREE = ("run.", "exam.", "logger", "referee.workers")
"""Keys (or their beginnings) on which what is played does not depend."""


def differences(
    stored: Config, wanted: Config, free: Sequence[str] = FREE
) -> list[tuple[str, Any, Any]]:
    """(key, its value in `stored`, its value in `wanted`), but for the `free` keys.

    A run resolves `engine.threads=0` when it starts, so that 0 agrees with anything stored.
    """
    one, other = (flat(OmegaConf.to_container(OmegaConf.structured(c))) for c in (stored, wanted))
    other["engine.threads"] = other["engine.threads"] or one["engine.threads"]
    return [
        (key, one.get(key), other.get(key))
        for key in dict.fromkeys([*one, *other])
        if not key.startswith(tuple(free)) and one.get(key) != other.get(key)
    ]


def flat(node: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, with dotted keys; an empty mapping has none."""
    if not isinstance(node, dict):
        return {prefix[:-1]: node}
    return {k: v for key in node for k, v in flat(node[key], f"{prefix}{key}.").items()}
