"""What each key affects, and in which keys two configurations differ."""

from collections.abc import Collection
from functools import cache
from typing import Any

from azr_population.config.inside_azr import PopulationSettings
from azr_population.config.schema import Config, Section

RESUMABLE = frozenset({"evaluation", "duration", "none"})
"""What may change when a run goes on: it does not rewrite the past."""
REPEATED = frozenset({"duration", "performance", "none"})
"""What may differ between two runs of one seed that are one experiment."""
INCIDENTAL = frozenset({"performance", "none"})
"""What no comparison of two experiments has to tell."""


def touches_only(key: str, allowed: Collection[str]) -> bool:
    """Whether a key, or all keys of a group, have these effects alone. Keys nobody knows count as
    what is played."""
    effects = [effect for name, effect in _affected().items() if f"{name}.".startswith(f"{key}.")]
    return bool(effects) and all(effect in allowed for effect in effects)


def differences(
    stored: Config, requested: Config, allowed: Collection[str] = RESUMABLE
) -> list[tuple[str, Any, Any]]:
    """(key, its value in `stored`, its value in `wanted`), but for keys with the `allowed` effects.

    A run resolves `engine.threads=0` when it starts, so that 0 agrees with anything stored.
    """
    before, after = flat(stored.model_dump()), flat(requested.model_dump())
    after["engine.threads"] = after["engine.threads"] or before["engine.threads"]
    return [
        (key, before.get(key), after.get(key))
        for key in dict.fromkeys([*before, *after])
        if not touches_only(key, allowed) and before.get(key) != after.get(key)
    ]


def replay_settings(config: Config) -> dict[str, Any]:
    """The settings on which what is played depends, as plain data by dotted key."""
    settings = flat(config.model_dump())
    return {k: value for k, value in settings.items() if not touches_only(k, RESUMABLE)}


def flat(node: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, with dotted keys; an empty mapping has none."""
    if not isinstance(node, dict):
        return {prefix[:-1]: node}
    return {k: v for key in node for k, v in flat(node[key], f"{prefix}{key}.").items()}


def affects(kind: type[Section], prefix: str = "", inherited: str = "training") -> dict[str, str]:
    """What each field of a section changes (`schema.TRAINING` ...), by dotted key."""
    effects: dict[str, str] = {}
    sections = kind.sections()
    for name, field in kind.model_fields.items():
        extra = field.json_schema_extra
        effect = str(extra["affects"]) if isinstance(extra, dict) else inherited
        if name in sections:
            effects |= affects(sections[name], f"{prefix}{name}.", effect)
        else:
            effects[f"{prefix}{name}"] = effect
    return effects


@cache
def _affected() -> dict[str, str]:
    """Of both hosts, whose keys have the same effects where both have them, and of AZR's own keys
    that a run records."""
    place = {"trainer.default_local_dir": "none"}
    return place | affects(PopulationSettings, "population.") | affects(Config)
