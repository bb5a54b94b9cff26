"""Which keys two configurations disagree about, for whoever must refuse or explain it."""

from collections.abc import Collection
from functools import cache
from typing import Any

from omegaconf import OmegaConf

from azr_population.config.inside_azr import PopulationSettings
from azr_population.config.schema import Config
from azr_population.config.setting import Effect, effects

RESUMABLE = frozenset({Effect.MEASURE, Effect.SPAN, Effect.NOTHING})
"""What may change when a run goes on: it does not rewrite the past."""
REPEATED = frozenset({Effect.SPAN, Effect.SPEED, Effect.NOTHING})
"""What may differ between two runs of one seed that are one experiment."""
INCIDENTAL = frozenset({Effect.SPEED, Effect.NOTHING})
"""What no comparison of two experiments has to tell."""


def touches_only(key: str, allowed: Collection[Effect]) -> bool:
    """Whether a key, or all keys of a group, have these effects alone. Keys nobody knows count as
    what is played."""
    known = _effects()
    told = [known[name] for name in known if name == key or name.startswith(f"{key}.")]
    return bool(told) and all(effect in allowed for effect in told)


def differences(
    stored: Config, wanted: Config, allowed: Collection[Effect] = RESUMABLE
) -> list[tuple[str, Any, Any]]:
    """(key, its value in `stored`, its value in `wanted`), but for keys with the `allowed` effects.

    A run resolves `engine.threads=0` when it starts, so that 0 agrees with anything stored.
    """
    one, other = (flat(OmegaConf.to_container(OmegaConf.structured(c))) for c in (stored, wanted))
    other["engine.threads"] = other["engine.threads"] or one["engine.threads"]
    return [
        (key, one.get(key), other.get(key))
        for key in dict.fromkeys([*one, *other])
        if not touches_only(key, allowed) and one.get(key) != other.get(key)
    ]


def replay_settings(config: Config) -> dict[str, Any]:
    """The settings on which what is played depends, as plain data by dotted key."""
    settings = flat(OmegaConf.to_container(OmegaConf.structured(config)))
    return {k: value for k, value in settings.items() if not touches_only(k, RESUMABLE)}


def flat(node: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, with dotted keys; an empty mapping has none."""
    if not isinstance(node, dict):
        return {prefix[:-1]: node}
    return {k: v for key in node for k, v in flat(node[key], f"{prefix}{key}.").items()}


@cache
def _effects() -> dict[str, Effect]:
    """Of both hosts, whose keys have the same effects where both have them, and of AZR's own keys
    that a run records."""
    place = {"trainer.default_local_dir": Effect.NOTHING}
    return place | effects(PopulationSettings, "population.") | effects(Config)
