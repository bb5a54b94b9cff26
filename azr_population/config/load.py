"""From Hydra overrides to a checked `Config`; every mistake is a `UserError` of one line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from azr_population.config.effects import flat
from azr_population.config.schema import Config, unknown_key
from azr_population.errors import UserError
from azr_population.files import read_yaml
from azr_population.versions import refuse_older_format

GROUPS = Path(__file__).parent
"""A folder per group of the configuration, with a file per choice."""

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


ConfigStore.instance().store(name="schema", node=Config().model_dump())


def load_config(overrides: Sequence[str]) -> Config:
    """Composes `local.yaml` with overrides such as `population=2t2s` or `run.steps=40`. Raises
    UserError: an unknown group option or key, a value of the wrong type or out of range."""
    choices, fields = _read(overrides)
    return _to_config(_composed(choices), fields)


def config_from_file(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Reads a configuration as `to_yaml` writes it and applies overrides (`run.steps=40`): first
    the groups that are chosen anew (`population=1t1s`), then fields. Raises UserError: as
    `load_config`; or no such file, or no YAML."""
    choices, fields = _read(overrides)
    stored = OmegaConf.merge(Config().model_dump(), _values_only(path))
    for choice in choices:
        composed = OmegaConf.create(_composed([choice]))
        for key in _keys_of(choice.key):
            OmegaConf.update(stored, key, OmegaConf.select(composed, key), merge=False)
    return _to_config(stored, fields)


def load_fork(overrides: Sequence[str]) -> Config:
    """As `load_config`, but where `run.init_from=RUN@STEP` is among the overrides they change the
    settings of that run. The folder is not taken over."""
    forks = [text.partition("=")[2] for text in overrides if text.startswith("run.init_from=")]
    parent = Path(forks[-1].strip("'\"").rpartition("@")[0]) if forks else Path()
    if not forks or not (parent / "config.yaml").is_file():
        return load_config(overrides)  # whoever opens the fork says what is wrong with it
    folder = "run.dir=''"
    return config_from_file(parent / "config.yaml", (folder, "run.resume=false", *overrides))


def to_yaml(config: Config) -> str:
    """The resolved configuration as YAML; the inverse of `config_from_file`."""
    return OmegaConf.to_yaml(OmegaConf.create(config.model_dump()))


def _read(overrides: Sequence[str]) -> tuple[list[Override], list[Override]]:
    """Choices of groups, and fields. Raises UserError: a group has no such choice."""
    read = [_read_one(text) for text in overrides]
    choices = [
        override
        for override in read
        if isinstance(override.value, str) and (GROUPS / override.key).is_dir()
    ]
    for choice in choices:
        names = sorted(path.stem for path in (GROUPS / choice.key).glob("*.yaml"))
        if choice.value not in names:
            text = f"{choice.key}={choice.value} is unknown; choose one of: {', '.join(names)}"
            raise UserError(text, key=choice.key)
    return choices, [override for override in read if override not in choices]


def _read_one(text: str) -> Override:
    """One `KEY=VALUE` of the command line; the pluses that AZR's command needs mean nothing. Raises
    UserError: it is not in that form, the schema lacks its key, or it has several values."""
    key, equals, value = text.partition("=")
    key = key.lstrip("+")
    if key.startswith("~"):
        raise UserError(f"{text}: keys cannot be removed; leave the key out for its default")
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


def _composed(choices: Sequence[Override]) -> Any:
    """The defaults with these choices of groups, as plain data."""
    with initialize_config_module("azr_population.config", version_base="1.3"):
        composed = compose("local", [f"{choice.key}={choice.value}" for choice in choices])
    return OmegaConf.to_container(composed)


def _keys_of(group: str) -> list[str]:
    """The fields that any of a group's choices sets."""
    fields, keys = set(Config.keys()), set()
    for file in (GROUPS / group).glob("*.yaml"):
        prefix = "" if "@package _global_" in file.read_text(encoding="utf-8") else f"{group}."
        for key in flat({k: v for k, v in read_yaml(file).items() if k != "defaults"}):
            key = f"{prefix}{key}"
            while key not in fields and "." in key:  # an entry of a dictionary: the whole of it
                key = key.rpartition(".")[0]
            keys.add(key)
    return sorted(keys & fields)


def _values_only(path: Path) -> dict[str, Any]:
    """A stored configuration, which holds values only: whoever sent it could otherwise have it
    read the environment or run a resolver."""
    settings = read_yaml(path)
    refuse_older_format(path, settings)
    for key, value in flat(settings).items():
        if "${" in str(value):
            raise UserError(
                f"{path}: {key}={value} is not a value but something to look up, which the "
                "configuration of a run never holds; write the value there"
            )
    return settings


def _to_config(settings: Any, fields: Sequence[Override]) -> Config:
    try:
        merged = OmegaConf.merge(settings, *(field.node for field in fields))
        return Config.checked(OmegaConf.to_container(merged, resolve=True))
    except OmegaConfBaseException as error:
        raise UserError(" ".join(str(error).split())) from error
