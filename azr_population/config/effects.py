"""The effect of each key, and the keys in which two configurations differ."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic.fields import FieldInfo

from azr_population.config.inside_azr import PopulationSettings
from azr_population.config.schema import Config
from azr_population.config.section import Section

RESUMABLE = frozenset({"evaluation", "duration", "none"})
"""Keys with these effects may change on resume: they do not rewrite the past."""
REPEATED = frozenset({"duration", "performance", "none"})
"""Keys with these effects may differ between runs of one experiment."""
INCIDENTAL = frozenset({"performance", "none"})
"""Keys with these effects are left out of comparisons."""

OPTIONAL = re.compile(r"(operators|options|hyperparameters)\b")
"""Matches keys that a run has only if they are given: one that lacks them goes without."""


@cache
def touches_only(key: str, allowed: frozenset[str]) -> bool:
    """Whether a key, or all keys of a group, have these effects only. Unknown keys count as
    training."""
    effects = [effect for name, effect in _affected().items() if f"{name}.".startswith(f"{key}.")]
    return bool(effects) and all(effect in allowed for effect in effects)


def changed_settings(stored: Config, requested: Config) -> list[tuple[str, Any, Any]]:
    """(key, stored value, requested value) for the keys that differ, except `RESUMABLE` ones. A run
    resolves `engine.threads=0` when it starts, so 0 equals any stored value."""
    before, after = flat(stored.model_dump()), flat(requested.model_dump())
    after["engine.threads"] = after["engine.threads"] or before["engine.threads"]
    return [
        (key, before.get(key), after.get(key))
        for key in dict.fromkeys([*before, *after])
        if not touches_only(key, RESUMABLE) and before.get(key) != after.get(key)
    ]


def differing_keys(
    recorded: Mapping[str, Any], wanted: Mapping[str, Any], allowed: frozenset[str]
) -> list[str]:
    """The dotted keys in which a recorded configuration differs, except those with the `allowed`
    effects. One that an older run lacks is passed over, unless it is `OPTIONAL`."""
    return [
        key
        for key in dict.fromkeys([*recorded, *wanted])
        if recorded.get(key) != wanted.get(key)
        and ((key in recorded and key in wanted) or OPTIONAL.search(key))
        and not touches_only(key, allowed)
    ]


def replay_settings(config: Config) -> dict[str, Any]:
    """The settings that determine what is played, as plain data by dotted key."""
    settings = flat(config.model_dump())
    return {k: value for k, value in settings.items() if not touches_only(k, RESUMABLE)}


def flat(node: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, with dotted keys; an empty mapping has none."""
    if not isinstance(node, dict):
        return {prefix[:-1]: node}
    return {k: v for key in node for k, v in flat(node[key], f"{prefix}{key}.").items()}


def effect_of(field: FieldInfo, inherited: str) -> str:
    """The effect of a field (`schema.TRAINING` ...); without one of its own it has its
    section's."""
    extra = field.json_schema_extra
    return str(extra["affects"]) if isinstance(extra, dict) else inherited


def affects(kind: type[Section], prefix: str = "", inherited: str = "training") -> dict[str, str]:
    """The effect of each field of a section, by dotted key."""
    effects: dict[str, str] = {}
    sections = kind.sections()
    for name, field in kind.model_fields.items():
        effect = effect_of(field, inherited)
        if name in sections:
            effects |= affects(sections[name], f"{prefix}{name}.", effect)
        else:
            effects[f"{prefix}{name}"] = effect
    return effects


@cache
def _affected() -> dict[str, str]:
    """The effects of all keys of both hosts, and of AZR's own keys that a run records."""
    azr_keys = {"trainer.default_local_dir": "none"}
    return azr_keys | affects(PopulationSettings, "population.") | affects(Config)
