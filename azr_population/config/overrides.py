"""Overrides as people type them: `KEY=VALUE`, the value read by Hydra's parser."""

import re
from dataclasses import dataclass
from functools import reduce
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from azr_population.config.schema import Config, unknown_key
from azr_population.errors import UserError

OPERATORS, OPTIONS = "evolution.operators.", "evolution.options."
ENTRIES = (
    OPERATORS,
    OPTIONS,
    "evolution.selection_options.",
    "evolution.hyperparameters.",
    "matchmaking.options.",
    "engine.vllm.",
)
"""Beginnings of keys that the schema leaves open: entries of its dictionaries."""


@dataclass(frozen=True)
class Override:
    """A value for a dotted key: a field, a section, or an entry of a dictionary."""

    key: str
    value: Any

    @property
    def node(self) -> dict[str, Any]:
        """The value in nested mappings. Names of operators may hold dots and pluses."""
        path = self.key.split(".")
        if self.key.startswith(OPERATORS):
            path = [*path[:2], self.key.removeprefix(OPERATORS)]
        if self.key.startswith(OPTIONS) and len(path) > 3:
            path = [*path[:2], ".".join(path[2:-1]), path[-1]]
        return reduce(lambda value, name: {name: value}, reversed(path), self.value)


def read_override(text: str) -> Override:
    """One `KEY=VALUE` of the command line; the pluses that AZR's command needs mean nothing. Raises
    UserError: it is not in that form, the schema lacks its key, or it has several values."""
    key, equals, value = text.partition("=")
    key = key.lstrip("+")
    if key.startswith("~"):
        raise UserError(f"{text}: no key can be taken away; leave it out for its default")
    try:
        if not equals:
            raise HydraException
        parsed = OverridesParser.create().parse_override(f"key={value}")
    except HydraException as error:
        raise UserError(
            f"{text} cannot be read as KEY=VALUE; quote a value that holds signs, as in "
            "\"run.dir='runs/a=b'\""
        ) from error
    if key not in set(Config.keys()) and not key.startswith(ENTRIES):
        raise unknown_key(Config, key)
    if parsed.is_sweep_override():
        values = value.replace(",", " ") if re.fullmatch(r"[\w.,+-]+", value) else "1 2 3"
        raise UserError(
            f"{text}: a run has one value, and a list has brackets; for several runs: for v in "
            f"{values}; do azr-population train {key}=$v run.dir=runs/{key}_$v; done",
            key=key,
        )
    return Override(key, parsed.value())
