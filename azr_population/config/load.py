"""From Hydra overrides to a checked `Config`; every mistake is a `UserError` of one line."""

import re
from collections.abc import Sequence
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
from azr_population.config.schema import Config
from azr_population.config.section import GROUPS, groups, unknown_key
from azr_population.errors import UserError, did_you_mean, first_line
from azr_population.files import read_yaml
from azr_population.registry import trust
from azr_population.versions import refuse_older_format

OPERATORS, OPTIONS = "evolution.operators.", "evolution.options."
ENTRIES = (
    OPERATORS,
    OPTIONS,
    "evolution.hyperparameters.",
    "engine.vllm.",
    "population.init_from.",
)
"""Prefixes of keys that are entries of the schema's dictionaries, so any name may follow."""


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
    stored = _merged(Config().model_dump(), [_values_only(path)])
    for choice in choices:
        composed = OmegaConf.create(_composed([choice]))
        for key in _keys_of(choice.partition("=")[0]):
            OmegaConf.update(stored, key, OmegaConf.select(composed, key), merge=False)
    return _to_config(stored, fields)


def to_yaml(config: Config) -> str:
    """The resolved configuration as YAML; the inverse of `config_from_file`."""
    return OmegaConf.to_yaml(OmegaConf.create(config.model_dump()))


def _read(overrides: Sequence[str]) -> tuple[list[str], list[dict[str, Any]]]:
    """Choices of groups, such as `population=2t2s`, and fields as nested mappings. Leading pluses,
    which AZR's command needs, are ignored. Code that they name may be run: they were typed.

    Raises UserError: an override is not in the form KEY=VALUE, the schema lacks its key, a group
    has no such choice, or there are several values.
    """
    choices: list[str] = []
    fields: list[dict[str, Any]] = []
    keys = set(Config.keys())
    for number, text in enumerate(overrides):
        key, equals, typed = text.partition("=")
        key = key.lstrip("+")
        if not (key and equals):
            raise _no_override(text, overrides[number + 1 :])
        try:
            if key.startswith("~"):
                raise HydraException
            text.encode()  # bytes that are not UTF-8 cannot be stored
            parsed = OverridesParser.create().parse_override(f"key={typed}")
        except (HydraException, ValueError) as error:
            raise UserError(
                f"{text:.200} cannot be read as NAME=VALUE; quote a value that holds signs, as in "
                "\"run.dir='runs/a=b'\""
            ) from error
        if key not in keys and not key.startswith(ENTRIES):
            raise unknown_key(Config, key, value=typed)
        if parsed.is_sweep_override():
            raise UserError(
                f"{text} has several values; a run has one, and a list has brackets", key=key
            )
        if "${" in typed:
            raise UserError(
                f"{text} is not a value but something to look up, which would be stored and shown; "
                "give the value itself",
                key=key,
            )
        value = parsed.value()
        if isinstance(value, (bool, int, float)) and Config.takes_text(key):
            value = typed.strip()  # a name stays as it is typed: 1e3 is not 1000.0
        names = groups().get(key, [])
        if not names or isinstance(value, dict):
            fields.append(_nested(key, value))
        elif value in names:
            choices.append(f"{key}={value}")
        else:
            raise UserError(
                f"{text} is unknown{_meant_choice(key, typed, names)}; choose one of: "
                f"{', '.join(names)}",
                key=key,
            )
    trust(fields)
    return choices, fields


def _no_override(text: str, following: Sequence[str]) -> UserError:
    """The error for a word without `=`: a choice without its group, or a key without its value,
    which is then among the words after it."""
    if chosen := [f"{group}={text}" for group, names in groups().items() if text in names]:
        return UserError(f"{text} is not NAME=VALUE; did you mean {' or '.join(chosen)}?")
    key = text.strip("+:=")
    if key not in set(Config.keys()):
        return UserError(f"{text:.200} is not NAME=VALUE, such as run.steps=40")
    value = next((word for word in following if word.strip(":=")), "VALUE")
    return UserError(f"{key} has no value; write {key}={value} without spaces", key=key)


def _meant_choice(group: str, typed: str, names: Sequence[str]) -> str:
    """A hint for a choice that a group does not have."""
    if group == "base" and "/" in typed:
        return f" (did you mean base=hf base.path={typed}?)"
    size = re.fullmatch(r"(\d+)t(\d+)s", typed.lower())
    if group == "population" and size and typed.lower() not in names:
        return f" (write population.teachers={size[1]} population.students={size[2]})"
    if group == "engine" and typed == "vllm":
        return " (did you mean engine=torch_cuda engine.rollout=vllm?)"
    if "none" in names and typed.lower() in ("off", "no", "false", "null"):
        return f" (did you mean {group}=none?)"
    near = next((name for name in names if typed.lower() in name), typed.lower())
    return did_you_mean(near, names)


def _nested(key: str, value: Any) -> dict[str, Any]:
    """A value for a dotted key in nested mappings. Names of operators may hold dots and pluses."""
    path = key.split(".")
    if key.startswith(OPERATORS):
        path = [*path[:2], key.removeprefix(OPERATORS)]
    if key.startswith(OPTIONS) and len(path) > 3:
        path = [*path[:2], ".".join(path[2:-1]), path[-1]]
    return reduce(lambda inner, name: {name: inner}, reversed(path), value)


def _composed(choices: Sequence[str]) -> Any:
    """The defaults with these choices of groups, as plain data."""
    with initialize_config_module("azr_population.config", version_base="1.3"):
        return OmegaConf.to_container(compose("local", list(choices)))


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
    """A stored configuration. Raises UserError if it has an interpolation: a file from a stranger
    could read the environment or run a resolver."""
    settings = read_yaml(path)
    refuse_older_format(path, settings)
    for key, value in flat(settings).items():
        if "${" in str(value):
            raise UserError(
                f"{path}: {key}={value} is not a value but something to look up, which the "
                "configuration of a run never holds; write the value there"
            )
    return settings


def _to_config(settings: Any, fields: Sequence[dict[str, Any]]) -> Config:
    return Config.checked(OmegaConf.to_container(_merged(settings, fields), resolve=True))


def _merged(settings: Any, layers: Sequence[dict[str, Any]]) -> Any:
    """`settings` with each of the layers upon them. Raises UserError: a list for a mapping, or the
    reverse; or a value that YAML has and a configuration does not, such as a date."""
    settings = OmegaConf.create(settings)
    for layer in layers:
        try:
            settings = OmegaConf.merge(settings, layer)
        except OmegaConfBaseException as error:
            Config.checked(layer)  # says it by the key, which OmegaConf does not have
            key = error.full_key or next(iter(flat(layer)))
            raise UserError(f"{key} is refused: {first_line(error)}", key=key) from error
    return settings
