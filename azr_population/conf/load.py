"""From Hydra overrides to a checked `Config`, with every mistake told in one line."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import yaml
from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.errors import ConfigCompositionException, HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from azr_population.conf.schema import Config
from azr_population.errors import UserError
from azr_population.evolution.registry import get_operator

ConfigStore.instance().store(name="schema", node=Config)


def load_config(overrides: Sequence[str]) -> Config:
    """Composes `local.yaml` with Hydra overrides such as `population=2t2s` or `run.steps=40`.

    Raises:
        UserError: an unknown group option or key, a value of the wrong type or out of range.
    """
    for override in overrides:
        # Hydra would only say that the key does not exist.
        named = re.match(r"\+?evolution\.operators\.(\w+)=", override)
        if named:
            get_operator(named[1])
    try:
        with initialize_config_module("azr_population.conf", version_base="1.3"):
            composed = compose("local", list(overrides))
        return _to_config(composed)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(_one_line(error)) from error


def config_from_file(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Reads a run's `config.yaml` and applies dotted overrides (`run.steps=40`) to it."""
    try:
        loaded = OmegaConf.merge(OmegaConf.structured(Config), OmegaConf.load(path))
        return _to_config(OmegaConf.merge(loaded, OmegaConf.from_dotlist(list(overrides))))
    except FileNotFoundError as error:
        raise UserError(f"no run at {path.parent}: there is no {path.name} in it") from error
    except (OSError, yaml.YAMLError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} or {list(overrides)} cannot be read: {reason}") from error
    except OmegaConfBaseException as error:
        raise UserError(_one_line(error)) from error


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
    from azr_population.evolution.fitness import FITNESS
    from azr_population.evolution.replacement import REPLACEMENT
    from azr_population.evolution.selection import SELECTION
    from azr_population.matchmaking import WEIGHTINGS
    from azr_population.selfplay.rewards import TEACHER_REWARDS
    from azr_population.tasks.formats import FORMATS
    from azr_population.tasks.task import TaskType
    from azr_population.tasks.validity import REFUSALS

    TEACHER_REWARDS.find(config.population.teacher_reward)
    WEIGHTINGS.find(config.matchmaking.weighting)
    FITNESS.find(config.evolution.fitness)
    SELECTION.find(config.evolution.selection)
    REPLACEMENT.find(config.evolution.replacement)
    _one_of("engine.name", config.engine.name, ("torch",))
    _one_of("base.format", config.base.format, FORMATS)
    _one_of("base.dtype", config.base.dtype, ("float32", "bfloat16", "float16"))
    for name in config.task.types:
        _one_of("task.types", name, [str(kind) for kind in TaskType])
    for name in config.task.refuse:
        _one_of("task.refuse", name, REFUSALS)
    for name in config.evolution.operators:
        get_operator(name)
    if not config.task.types:
        raise UserError("task.types is empty; name at least one of code_o, code_i, code_f")

    for key, value, least in (
        ("seed", config.seed, 0),
        ("engine.threads", config.engine.threads, 0),
        ("engine.propose_tokens", config.engine.propose_tokens, 0),
        ("engine.solve_tokens", config.engine.solve_tokens, 0),
        ("referee.workers", config.referee.workers, 0),
        ("task.references", config.task.references, 0),
        ("task.buffer_size", config.task.buffer_size, 1),
        ("population.rows", config.population.rows, 2),
        ("population.attempts", config.population.attempts, 1),
        ("run.steps", config.run.steps, 0),
        ("run.checkpoint_every", config.run.checkpoint_every, 1),
        ("run.keep_checkpoints", config.run.keep_checkpoints, 1),
        ("evolution.interval", config.evolution.interval, 0),
        ("evolution.elites", config.evolution.elites, 1),
        ("base.lora.rank", config.base.lora.rank, 1),
        ("engine.micro_batch_tokens", config.engine.micro_batch_tokens, 1),
        ("engine.generate_rows", config.engine.generate_rows, 1),
        ("exam.every", config.exam.every, 0),
        ("exam.tasks_per_type", config.exam.tasks_per_type, 1),
        ("exam.attempts", config.exam.attempts, 1),
    ):
        if value < least:
            raise UserError(f"{key}={value} is too small; the least is {least}")
    for key, share in (
        ("evolution.fraction", config.evolution.fraction),
        ("matchmaking.draw_probability", config.matchmaking.draw_probability),
    ):
        if not 0.0 <= share < 1.0:
            raise UserError(f"{key}={share} is not a share; give a number from 0 to below 1")
    for key, number in (
        ("engine.temperature", config.engine.temperature),
        ("engine.max_grad_norm", config.engine.max_grad_norm),
        ("base.lora.alpha", config.base.lora.alpha),
    ):
        if not number > 0:
            raise UserError(f"{key}={number} must be above 0")
    for key, rate in (
        ("population.teacher_lr", config.population.teacher_lr),
        ("population.student_lr", config.population.student_lr),
        ("population.agent_lr", config.population.agent_lr),
        ("population.duplicate_price", config.population.duplicate_price),
        ("engine.weight_decay", config.engine.weight_decay),
    ):
        if not 0 <= rate < float("inf"):
            raise UserError(f"{key}={rate} must be a number, at least 0")
    try:
        torch.device(config.engine.device)
    except RuntimeError as error:
        raise UserError(f"engine.device={config.engine.device} is unknown; cpu or cuda") from error
    if config.base.name != "nano" and not config.base.path:
        raise UserError("base.path has no value; name the folder of a Hugging Face causal LM")
    teachers, students = config.population.teachers, config.population.students
    if (teachers == 0) != (students == 0) or teachers < 0 or students < 0:
        raise UserError(
            f"population.teachers={teachers} with population.students={students}: "
            "give at least one of each, or 0 of both for the single agent"
        )
    _check_operators(config)


def _check_operators(config: Config) -> None:
    """Refuses a mix of operators that no replacement of this run could draw from."""
    weights = config.evolution.operators
    for name, weight in weights.items():
        if not 0 <= weight < float("inf"):
            raise UserError(f"evolution.operators.{name}={weight} must be a number, at least 0")
    smallest = min(config.population.teachers, config.population.students)
    if config.evolution.interval == 0 or smallest < 2:
        return
    used = [get_operator(name) for name, weight in weights.items() if weight > 0]
    if not used:
        raise UserError("evolution.operators are all 0; weigh one, or set evolution.interval=0")
    replaced = max(1, math.floor(config.evolution.fraction * smallest + 0.5))
    survivors = max(smallest - replaced, config.evolution.elites)
    if all(operator.parents > survivors for operator in used):
        raise UserError(
            f"evolution.operators: all of {', '.join(operator.name for operator in used)} need two "
            f"parents, but of {smallest} members only {survivors} survive; weigh a mutation"
        )
    if config.base.lora.rank < 2 and weights.get("svd_subspace", 0) > 0:
        raise UserError("base.lora.rank=1: svd_subspace needs 2; set its weight to 0")


def _one_of(key: str, value: str, known: Any) -> None:
    if value not in known:
        raise UserError(f"{key}={value} is unknown; choose from {', '.join(sorted(known))}")
