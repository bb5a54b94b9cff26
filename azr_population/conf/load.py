"""From Hydra overrides to a checked `Config`, with every mistake told in one line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import yaml
from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.errors import ConfigCompositionException, HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from azr_population.conf.differences import flat
from azr_population.conf.schema import Config
from azr_population.conf.setting import check_fields
from azr_population.errors import UserError

ConfigStore.instance().store(name="schema", node=Config)


def load_config(overrides: Sequence[str]) -> Config:
    """Composes `local.yaml` with Hydra overrides such as `population=2t2s` or `run.steps=40`.

    Raises:
        UserError: an unknown group option or key, a value of the wrong type or out of range.
    """
    try:
        with initialize_config_module("azr_population.conf", version_base="1.3"):
            composed = compose("local", [_with_new_entries(text) for text in overrides])
        return _to_config(composed)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_one_line(error)) from error


def _with_new_entries(override: str) -> str:
    """An override of one entry of a dict field, such that Hydra takes a new entry too.

    Hydra refuses `evolution.options.dare.p=0.5` without `++`, and cannot parse the name of a
    sequence of operators as a key. What an entry may be called is checked afterwards.
    """
    entry = re.fullmatch(
        r"\+{0,2}(evolution\.operators|evolution\.options|evolution\.selection_options"
        r"|matchmaking\.options|engine\.vllm)\.([^=]+)=(.*)",
        override,
    )
    if not entry:
        return override
    node, name, value = entry.groups()
    if "+" not in name:
        return f"++{node}.{name}={value}"
    if node == "evolution.options":
        raise UserError(
            f"{override}: options are given by operator and hold in sequences too, as in "
            "evolution.options.full_gaussian.eps=0.1"
        )
    return f"++{node}={{{name}:{value}}}"


def config_from_file(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Reads a run's `config.yaml` and applies dotted overrides (`run.steps=40`) to it."""
    try:
        loaded = OmegaConf.merge(OmegaConf.structured(Config), _without_resolvers(path))
        return _to_config(
            OmegaConf.merge(loaded, OmegaConf.from_dotlist(list(map(_chosen_logger, overrides))))
        )
    except FileNotFoundError as error:
        raise UserError(f"no run at {path.parent}: there is no {path.name} in it") from error
    except (OSError, yaml.YAMLError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} or {list(overrides)} cannot be read: {reason}") from error
    except OmegaConfBaseException as error:
        raise UserError(_one_line(error)) from error


def _without_resolvers(path: Path) -> DictConfig | ListConfig:
    """A stored configuration, which holds values only.

    Whoever sent it could otherwise have it read the environment or run a resolver.
    """
    loaded = OmegaConf.load(path)
    for key, value in flat(OmegaConf.to_container(loaded, resolve=False)).items():
        if "${" in str(value):
            raise UserError(
                f"{path}: {key}={value} is no value but something to look up, which the "
                "configuration of a run never holds; write the value there"
            )
    return loaded


def _chosen_logger(override: str) -> str:
    """`logger=wandb` as the field that it sets: the one group that a resumed run may change."""
    name = override.removeprefix("logger=")
    if name == override:
        return override
    return f"logger.names=[{'' if name == 'none' else name}]"


def to_yaml(config: Config) -> str:
    """The resolved configuration as YAML; the inverse of `config_from_file`."""
    return OmegaConf.to_yaml(OmegaConf.structured(config))


def _to_config(composed: Any) -> Config:
    assert isinstance(composed, DictConfig)
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
    unknown = re.search(r"Could not override '([\w.]+)'|Key '(\w+)' not in", str(error))
    if unknown:
        key = unknown[1] or unknown[2]
        near = difflib.get_close_matches(key, _keys(OmegaConf.structured(Config)), n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "see azr-population train --config"
        return f"{key} is unknown; {hint}"
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


def _keys(node: DictConfig, prefix: str = "") -> list[str]:
    """All dotted keys of a configuration."""
    keys: list[str] = []
    for key in map(str, node):
        keys.append(f"{prefix}{key}")
        if isinstance(node[key], DictConfig):
            keys += _keys(node[key], f"{prefix}{key}.")
    return keys


def check(config: Config) -> None:
    """Refuses values that no run can work with, before anything is loaded.

    Raises:
        UserError: naming the key, the value and what would be accepted.
    """
    # Late: the rooms that are asked read the dataclasses of this one.
    from azr_population.conf.check import check_population
    from azr_population.engines.assembly import check_engine, check_rollout
    from azr_population.loggers import check_names
    from azr_population.tasks.formats import FORMATS
    from azr_population.tasks.task import TaskType
    from azr_population.tasks.validity import REFUSALS

    check_fields(config)
    check_names(config.logger.names)
    check_engine(config.engine.name, config.engine.workers)
    check_rollout(config.engine.rollout, config.base.lora.rank)
    _one_of("base.format", config.base.format, FORMATS)
    for name in config.task.types:
        _one_of("task.types", name, [str(kind) for kind in TaskType])
    for name in config.task.refuse:
        _one_of("task.refuse", name, REFUSALS)
    if not config.task.types:
        raise UserError("task.types is empty; name at least one of code_o, code_i, code_f")
    if config.population.solver_baseline == "task" and config.population.attempts < 2:
        raise UserError(
            f"population.attempts={config.population.attempts} leaves nothing to compare an "
            "attempt with; give at least 2, or population.solver_baseline=type"
        )
    try:
        torch.device(config.engine.device)
    except RuntimeError as error:
        raise UserError(f"engine.device={config.engine.device} is unknown; cpu or cuda") from error
    if config.base.name != "nano" and not config.base.path:
        raise UserError("base.path has no value; name the folder of a Hugging Face causal LM")
    check_population(config.population, config.matchmaking, config.evolution, config.base.lora.rank)


def _one_of(key: str, value: str, known: Any) -> None:
    if value not in known:
        raise UserError(f"{key}={value} is unknown; choose from {', '.join(sorted(known))}")
