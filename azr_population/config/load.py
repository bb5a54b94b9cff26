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
from azr_population.config.overrides import known_keys, read_override, unknown
from azr_population.config.schema import COMPARING, Config, RunConfig
from azr_population.config.setting import check_fields
from azr_population.errors import UserError
from azr_population.files import read_yaml

GROUPS = Path(__file__).parent
"""A folder per group of the configuration, with a file per choice."""

ConfigStore.instance().store(name="schema", node=Config)


def load_config(overrides: Sequence[str]) -> Config:
    """Composes `local.yaml` with Hydra overrides such as `population=2t2s` or `run.steps=40`.
    Raises UserError: an unknown group option or key, a value of the wrong type or out of range."""
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
    """Reads a configuration as `to_yaml` writes it and applies overrides (`run.steps=40`): first
    the groups that are chosen anew (`population=1t1s`), then fields. Raises UserError: as
    `load_config`; or no such file, or no YAML."""
    try:
        loaded = _checked(_values_only(path))
    except OmegaConfBaseException as error:
        raise UserError(f"{path}: {_one_line(error)}") from error
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
        raise UserError(_one_line(error)) from error


def load_fork(overrides: Sequence[str]) -> Config:
    """As `load_config`, but where `run.fork=RUN@STEP` is among the overrides they change the
    settings of that run. The folder is not taken over."""
    forks = [text.partition("=")[2] for text in overrides if text.startswith("run.fork=")]
    parent = Path(forks[-1].strip("'\"").rpartition("@")[0]) if forks else Path()
    if not forks or not (parent / "config.yaml").is_file():
        return load_config(overrides)  # what is wrong with the fork is told by who opens it
    own = f"run.dir={RunConfig.dir}"
    return config_from_file(parent / "config.yaml", (own, "run.resume=false", *overrides))


def _chosen(group: str, choice: str) -> dict[str, Any]:
    """What a choice of a group sets: every field that any of its choices sets."""
    composed = OmegaConf.structured(load_config([f"{group}={choice}"]))
    known, keys = set(known_keys()), set()
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
    whole = re.search(r"Invalid type assigned: \w+ is not .*?full_key: ([\w.]+)", told, re.DOTALL)
    if whole and (fields := [key for key in known_keys() if key.startswith(f"{whole[1]}.")]):
        return f"{whole[1]} is a section and takes no value; set a field of it, such as {fields[0]}"
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
    by who knows them: `hosts.local.check`, `hosts.azr.settings`. Raises UserError: naming the key,
    the value and what would be accepted."""
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
