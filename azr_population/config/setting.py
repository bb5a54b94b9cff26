"""What is known of a field of the configuration beside its type and default: bounds and effect."""

import dataclasses
import math
from collections.abc import Callable, Iterator
from enum import Enum, auto
from typing import Any

from azr_population.errors import UserError


class Effect(Enum):
    """What changes with a field."""

    PLAY = auto()
    """What is played: two runs that differ in it are different experiments."""
    MEASURE = auto()
    """How what was learned is measured."""
    SPAN = auto()
    """How much there is of it: how long it goes on, how often it is looked at."""
    SPEED = auto()
    """How fast it goes; sums may be rounded otherwise."""
    NOTHING = auto()
    """Where it is recorded, and who looks on."""


def setting(
    default: Any = dataclasses.MISSING,
    *,
    factory: Any = dataclasses.MISSING,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    among: tuple[str, ...] = (),
    effect: Effect | None = None,
) -> Any:
    """A field with its bounds (`least` and `most` are allowed, `above` and `below` are not), or the
    words it is `among`. Without an effect it has its group's, or `Effect.PLAY`."""
    known: dict[str, Any] = {"least": least, "most": most, "above": above, "below": below}
    known |= {"among": among or None, "effect": effect}
    metadata = {name: value for name, value in known.items() if value is not None}
    if factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def check_fields(node: Any, prefix: str = "") -> None:
    """Refuses values out of their bounds in a dataclass and in those that it holds. Raises
    UserError: naming the key (`prefix` and its dotted name), the value and what is accepted."""
    for field in dataclasses.fields(node):
        key, value = f"{prefix}{field.name}", getattr(node, field.name)
        if dataclasses.is_dataclass(value):
            check_fields(value, f"{key}.")
        elif value is not None:
            _check(key, value, field.metadata)


def effects(kind: Any, prefix: str = "", inherited: Effect = Effect.PLAY) -> dict[str, Effect]:
    """The effect of every field of a dataclass, by dotted key."""
    found: dict[str, Effect] = {}
    for field in dataclasses.fields(kind):
        effect = field.metadata.get("effect", inherited)
        held = field.default_factory
        if isinstance(held, type) and dataclasses.is_dataclass(held):
            found |= effects(held, f"{prefix}{field.name}.", effect)
        else:
            found[f"{prefix}{field.name}"] = effect
    return found


def _check(key: str, value: Any, known: Any) -> None:
    each = value if isinstance(value, list) else [value]
    for word in each:
        if "among" in known and word not in known["among"]:
            choices = ", ".join(known["among"])
            raise UserError(f"{key}={word} is unknown; choose from {choices}")
    bounds = dict(_bounds(known))
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{key}={value} is no number to work with")
    if bounds and not all(holds(one) for holds in bounds.values() for one in each):
        raise UserError(f"{key}={value} is out of range; it must be {' and '.join(bounds)}")


def bounds_of(known: Any) -> list[str]:
    """The bounds of a field's metadata in words: `at least 1`, `one of float32, bfloat16`."""
    words = [f"one of {', '.join(known['among'])}"] if "among" in known else []
    return [*words, *(told for told, _ in _bounds(known))]


def _bounds(known: Any) -> Iterator[tuple[str, Callable[[float], bool]]]:
    """The bounds in words, each with its test."""
    if "least" in known:
        yield f"at least {known['least']:g}", lambda value: value >= known["least"]
    if "above" in known:
        yield f"above {known['above']:g}", lambda value: value > known["above"]
    if "most" in known:
        yield f"at most {known['most']:g}", lambda value: value <= known["most"]
    if "below" in known:
        yield f"below {known['below']:g}", lambda value: value < known["below"]
