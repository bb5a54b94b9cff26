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
from azr_population.config.overrides import read_override
from azr_population.config.schema import Config, unknown_key
from azr_population.errors import UserError
from azr_population.files import read_yaml
from azr_population.versions import refuse_older_format

GROUPS = Path(__file__).parent
"""A folder per group of the configuration, with a file per choice."""

ConfigStore.instance().store(name="schema", node=Config().model_dump())


def load_config(overrides: Sequence[str]) -> Config:
    """Composes `local.yaml` with Hydra overrides such as `population=2t2s` or `run.steps=40`.
    Raises UserError: an unknown group option or key, a value of the wrong type or out of range."""
    try:
        with initialize_config_module("azr_population.config", version_base="1.3"):
            composed = compose(
                "local", [read_override(text).input_line or text for text in overrides]
            )
        return _to_config(composed)
    except (HydraException, OmegaConfBaseException) as error:
        raise _in_one_line(error) from error


def config_from_file(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Reads a configuration as `to_yaml` writes it and applies overrides (`run.steps=40`): first
    the groups that are chosen anew (`population=1t1s`), then fields. Raises UserError: as
    `load_config`; or no such file, or no YAML."""
    try:
        loaded = _with_defaults(_values_only(path))
    except OmegaConfBaseException as error:
        raise UserError(f"{path}: {_in_one_line(error)}") from error
    try:
        read = [(one.key_or_group, one.value()) for one in map(read_override, overrides)]
        for group, choice in read:
            if (GROUPS / group).is_dir() and isinstance(choice, str):
                for key, value in _chosen(group, choice).items():
                    OmegaConf.update(loaded, key, value, merge=False)
        for key, value in read:
            if not ((GROUPS / key).is_dir() and isinstance(value, str)):
                OmegaConf.update(loaded, key, value)
        return _to_config(loaded)
    except OmegaConfBaseException as error:
        raise _in_one_line(error) from error


def load_fork(overrides: Sequence[str]) -> Config:
    """As `load_config`, but where `run.init_from=RUN@STEP` is among the overrides they change the
    settings of that run. The folder is not taken over."""
    forks = [text.partition("=")[2] for text in overrides if text.startswith("run.init_from=")]
    parent = Path(forks[-1].strip("'\"").rpartition("@")[0]) if forks else Path()
    if not forks or not (parent / "config.yaml").is_file():
        return load_config(overrides)  # what is wrong with the fork is told by who opens it
    own = "run.dir=''"
    return config_from_file(parent / "config.yaml", (own, "run.resume=false", *overrides))


def _chosen(group: str, choice: str) -> dict[str, Any]:
    """What a choice of a group sets: every field that any of its choices sets."""
    composed = OmegaConf.create(load_config([f"{group}={choice}"]).model_dump())
    known, keys = set(Config.keys()), set()
    for file in (GROUPS / group).glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        prefix = "" if "@package _global_" in text else f"{group}."
        for key in flat(read_yaml(file)):
            key = f"{prefix}{key}"
            while key not in known and "." in key:  # an entry of a dictionary: the whole of it
                key = key.rpartition(".")[0]
            keys.add(key)
    return {key: OmegaConf.select(composed, key) for key in sorted(keys & known)}


def _values_only(path: Path) -> dict[str, Any]:
    """A stored configuration, which holds values only.

    Whoever sent it could otherwise have it read the environment or run a resolver.
    """
    settings = read_yaml(path)
    refuse_older_format(path, settings)
    for key, value in flat(settings).items():
        if "${" in str(value):
            raise UserError(
                f"{path}: {key}={value} is no value but something to look up, which the "
                "configuration of a run never holds; write the value there"
            )
    return settings


def to_yaml(config: Config) -> str:
    """The resolved configuration as YAML; the inverse of `config_from_file`."""
    return OmegaConf.to_yaml(OmegaConf.create(config.model_dump()))


def _with_defaults(settings: Any) -> DictConfig:
    """Settings by name over the defaults; unknown ones stay, to be refused by the models."""
    merged = OmegaConf.merge(OmegaConf.create(Config().model_dump()), settings)
    assert isinstance(merged, DictConfig)
    return merged


def _to_config(composed: Any) -> Config:
    return Config.checked(OmegaConf.to_container(composed, resolve=True))


def _in_one_line(error: BaseException) -> UserError:
    """Hydra's and OmegaConf's messages, without their markup and line breaks."""
    choice = re.search(r"Could not find '(\w+)/(\w+)'", str(error))
    if choice:
        options = re.findall(r"^\t(\w+)$", str(error), flags=re.MULTILINE)
        text = f"{choice[1]}={choice[2]} is unknown; choose one of: {', '.join(options)}"
        return UserError(text, key=choice[1])
    told = f"{error.__cause__}\n{error}"
    key = re.search(r"Key .* not in .*\s+full_key: ([\w.]+)", told) or re.search(
        r"Could not override '([\w.]+)'", told
    )
    if key:
        return unknown_key(Config, key[1])
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
    return UserError("; ".join(dict.fromkeys(kept)).replace("\t", " "))
