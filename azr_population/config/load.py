"""From Hydra overrides to a checked `Config`, with every mistake told in one line."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.errors import ConfigCompositionException, HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from azr_population.config.differences import flat
from azr_population.config.overrides import read_override, unknown
from azr_population.config.schema import COMPARING, Config
from azr_population.config.setting import check_fields
from azr_population.errors import UserError
from azr_population.files import read_yaml

ConfigStore.instance().store(name="schema", node=Config)


def load_config(overrides: Sequence[str]) -> Config:
    """Composes `local.yaml` with Hydra overrides such as `population=2t2s` or `run.steps=40`.

    Raises:
        UserError: an unknown group option or key, a value of the wrong type or out of range.
    """
    try:
        with initialize_config_module("azr_population.config", version_base="1.3"):
            composed = compose(
                "local", [read_override(text).input_line or text for text in overrides]
            )
        # Once more, as if from a file: `++run={stepz: 3}` gets past Hydra.
        return _to_config(_checked(OmegaConf.to_container(composed, resolve=True)))
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_one_line(error)) from error


def config_from_file(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Reads a configuration as `to_yaml` writes it and applies dotted overrides (`run.steps=40`).

    Raises:
        UserError: as `load_config`; or no such file, no YAML, or a group that is chosen anew.
    """
    try:
        loaded = _checked(_values_only(path))
    except OmegaConfBaseException as error:
        raise UserError(f"{path}: {_one_line(error)}") from error
    try:
        for text in overrides:
            override = read_override(text)
            value = override.value()
            if override.key_or_group == "logger" and isinstance(value, str):
                # The one group that a resumed run may choose anew, as the field that it sets.
                value = {"names": [] if value == "none" else [value]}
            OmegaConf.update(loaded, override.key_or_group, value)
        return _to_config(loaded)
    except OmegaConfBaseException as error:
        raise UserError(_one_line(error)) from error


def _values_only(path: Path) -> dict[str, Any]:
    """A stored configuration, which holds values only.

    Whoever sent it could otherwise have it read the environment or run a resolver.
    """
    settings = read_yaml(path)
    for key, value in flat(settings).items():
        if "${" in str(value):
            raise UserError(
                f"{path}: {key}={value} is no value but something to look up, which the "
                "configuration of a run never holds; write the value there"
            )
    return settings


def to_yaml(config: Config) -> str:
    """The resolved configuration as YAML; the inverse of `config_from_file`."""
    return OmegaConf.to_yaml(OmegaConf.structured(config))


def _checked(settings: Any) -> DictConfig:
    """Settings by name over the schema's defaults; OmegaConf raises where it has no such key."""
    merged = OmegaConf.merge(OmegaConf.structured(Config), settings)
    assert isinstance(merged, DictConfig)
    return merged


def _to_config(composed: DictConfig) -> Config:
    config = OmegaConf.to_object(composed)
    assert isinstance(config, Config)
    check(config)
    return config


def _one_line(error: BaseException) -> str:
    """Hydra's and OmegaConf's messages, without their markup and line breaks."""
    choice = re.search(r"Could not find '(\w+)/(\w+)'", str(error))
    if choice:
        options = re.findall(r"^\t(\w+)$", str(error), flags=re.MULTILINE)
        return f"{choice[1]}={choice[2]} is unknown; choose one of: {', '.join(options)}"
    told = f"{error.__cause__}\n{error}"
    key = re.search(r"Key .* not in .*\s+full_key: ([\w.]+)", told) or re.search(
        r"Could not override '([\w.]+)'", told
    )
    if key:
        return str(unknown(key[1]))
    if group := re.search(r"Invalid type assigned: str .*\s+full_key: (\w+)$", told, re.MULTILINE):
        return f"{group[1]} is a group, and a configuration that is written out has its fields only"
    root: BaseException = error
    while isinstance(root, ConfigCompositionException) and root.__cause__ is not None:
        root = root.__cause__
    first = str(error).strip().splitlines()
    cause = [] if root is error else str(root).strip().splitlines()
    lines = [line.strip() for line in first + cause if line.strip()]
    kept = [
        line
        for line in lines
        if not line.startswith(("object_type", "reference_type", "Config search path", "provider="))
        and not line.startswith("Check that your config directory")
    ]
    return "; ".join(dict.fromkeys(kept)).replace("\t", " ")


def check(config: Config) -> None:
    """Refuses values out of their bounds, and those that contradict each other. Names are looked up
    by who knows them: `hosts.local.check`, `hosts.azr.settings`.

    Raises:
        UserError: naming the key, the value and what would be accepted.
    """
    check_fields(config)
    if config.task.types == []:
        raise UserError("task.types is empty; name at least one, or leave it out for all")
    if config.population.solver_baseline in COMPARING and config.population.attempts < 2:
        raise UserError(
            f"population.attempts={config.population.attempts} leaves nothing to compare an "
            "attempt with; give at least 2, or population.solver_baseline=type"
        )
    if config.base.name != "nano" and not config.base.path:
        raise UserError(
            "base.path has no value; give the folder of a Hugging Face causal LM, or its name on "
            "the Hub"
        )
    if config.matchmaking.past and not (config.run.snapshot_every and config.population.students):
        raise UserError(
            f"matchmaking.past={config.matchmaking.past} takes students of earlier snapshots, and "
            "this run has none; set run.snapshot_every=10, and a population with students"
        )
