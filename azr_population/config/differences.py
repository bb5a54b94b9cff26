"""Which keys two configurations disagree about, for whoever must refuse or explain it."""

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
    known = _affected()
    told = [known[name] for name in known if name == key or name.startswith(f"{key}.")]
    return bool(told) and all(effect in allowed for effect in told)


def differences(
    stored: Config, wanted: Config, allowed: Collection[str] = RESUMABLE
) -> list[tuple[str, Any, Any]]:
    """(key, its value in `stored`, its value in `wanted`), but for keys with the `allowed` effects.

    A run resolves `engine.threads=0` when it starts, so that 0 agrees with anything stored.
    """
    one, other = flat(stored.model_dump()), flat(wanted.model_dump())
    other["engine.threads"] = other["engine.threads"] or one["engine.threads"]
    return [
        (key, one.get(key), other.get(key))
        for key in dict.fromkeys([*one, *other])
        if not touches_only(key, allowed) and one.get(key) != other.get(key)
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
    found: dict[str, str] = {}
    sections = kind.sections()
    for name, field in kind.model_fields.items():
        extra = field.json_schema_extra
        what = str(extra["affects"]) if isinstance(extra, dict) else inherited
        if name in sections:
            found |= affects(sections[name], f"{prefix}{name}.", what)
        else:
            found[f"{prefix}{name}"] = what
    return found


@cache
def _affected() -> dict[str, str]:
    """Of both hosts, whose keys have the same effects where both have them, and of AZR's own keys
    that a run records."""
    place = {"trainer.default_local_dir": "none"}
    return place | affects(PopulationSettings, "population.") | affects(Config)
