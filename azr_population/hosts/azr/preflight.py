"""Checks before any model is loaded: is this the AZR that we hook into, and can a population do
what the command asks for.

Every fault is a `UserError` of one line with what was expected and what was found.
"""

from __future__ import annotations

import importlib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from omegaconf import OmegaConf

from azr_population.config.inside_azr import PopulationSettings
from azr_population.domains.known import find_domain
from azr_population.engines.assembly import (
    check_base_placement,
    check_rollout,
)
from azr_population.errors import UserError, first_line
from azr_population.hosts.azr import overrides
from azr_population.hosts.azr.settings import DOMAIN, rollout_settings
from azr_population.versions import installed

ENTRY = "absolute_zero_reasoner.main_azr_ppo"
TESTED = "AZR a82124e with verl 0.4.1"

HOOKED: Mapping[str, tuple[str, ...]] = {
    "absolute_zero_reasoner.trainer.ppo.azr_ray_trainer:CodeIORayPPOTrainer": (
        *("fit", "init_workers", "_compute_batch", "_validate", "_validate_config"),
        *("_create_train_code_gen_dataloader", "_create_train_code_pred_dataloader"),
        *("_save_checkpoint", "_load_checkpoint"),
    ),
    "absolute_zero_reasoner.rewards.reward_managers:CodeIORewardManager": (
        *("_get_data_dict", "_get_problem_generator_rewards_and_valid_programs"),
    ),
}
"""AZR's methods in whose place are ours."""


def check_host(main: ModuleType) -> None:
    """Refuses a host that is not AZR, or whose AZR or veRL differs where we hook it.

    `main` is the driver's `__main__`, whose trainer is to be replaced.

    Raises:
        UserError: naming what was expected, what was found and the versions.
    """
    for name in ("CodeIORayPPOTrainer", "TaskRunner"):
        if not hasattr(main, name):
            spec = getattr(main, "__spec__", None)
            running = spec.name if spec else getattr(main, "__file__", "an interactive session")
            raise UserError(
                f"+population works in `python -m {ENTRY}`, whose {name} it replaces; "
                f"this is {running}, which has none"
            )
    for place, methods in HOOKED.items():
        module, _, name = place.partition(":")
        try:
            hooked = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise UserError(f"{place} cannot be imported ({error}); {_versions()}") from error
        for method in methods:
            if not hasattr(hooked, method):
                raise UserError(f"{name} has no {method}, which we replace; {_versions()}")


def check_config(config: Any, settings: PopulationSettings) -> None:
    """Refuses what AZR can do and a population cannot, and budgets that do not come out even.

    Raises:
        UserError: naming the key, its value and the way out.
    """
    overrides.refuse(config)
    types = list(find_domain(DOMAIN).types)
    for problem_type in config.azr.problem_types:
        if problem_type not in types:
            raise UserError(
                f"azr.problem_types has {problem_type}, which +population does not support; "
                f"choose from {', '.join(types)}"
            )
    if settings.placement == "split" and config.trainer.n_gpus_per_node % 2:
        raise UserError(
            f"population.placement=split halves the workers of each node, and "
            f"trainer.n_gpus_per_node={config.trainer.n_gpus_per_node} is odd; make it even, or "
            "use population.placement=colocated",
            key="population.placement",
        )
    check_rollout(rollout_settings(config, settings).name, settings.lora.rank)
    check_parallel(config, settings)
    rows = agent_rows(config, settings)
    _check_matches(settings, rows)
    _check_seeds(config, rows)
    _check_ray(config)


def agent_rows(config: Any, settings: PopulationSettings) -> int:
    """Rows per problem type that the single agent proposes, and solves; a teacher proposes (and a
    student solves) twice as many, which makes the rows per member equal in all arms.

    Raises:
        UserError: `population.batch_size` cannot be split evenly over problem types and halves.
    """
    if settings.batch_size is None:
        return int(config.data.train_batch_size)
    parts = 2 * len(config.azr.problem_types)
    if settings.batch_size < parts or settings.batch_size % parts:
        raise UserError(
            f"population.batch_size={settings.batch_size} cannot be split evenly: it must be a "
            f"multiple of {parts} (2 * {len(config.azr.problem_types)} problem types), so that "
            "every member of every arm has as many",
            key="population.batch_size",
        )
    return settings.batch_size // parts


def check_base(config: Any, settings: PopulationSettings) -> None:
    """Refuses a local base without the layers that the adapters are to sit on, and rows that are
    longer than its context.

    Builds the base without weights. A hub name that is not downloaded yet is left to the workers.

    Raises:
        UserError: no such layers, too long rows, or a folder that holds no causal LM.
    """
    folder = Path(str(config.actor_rollout_ref.model.path)).expanduser()
    if not folder.is_dir():
        return
    from azr_population.engines.base_folder import context_of, meta_model
    from azr_population.hosts.local.run_engine import lora_of
    from azr_population.weights.bank import target_layers

    try:
        model = meta_model(folder)
    except (OSError, ValueError, KeyError) as error:
        reason = first_line(error)
        raise UserError(
            f"actor_rollout_ref.model.path={folder} is not a causal LM: {reason}"
        ) from error
    # Raises where there are none, with the names that there are.
    target_layers(model, lora_of(settings.lora))
    prompt, response = config.data.max_prompt_length, config.data.max_response_length
    context = context_of(model)
    if context is not None and prompt + response > context:
        raise UserError(
            f"data.max_prompt_length={prompt} and data.max_response_length={response} make rows of "
            f"{prompt + response} tokens, and the context of {folder} is {context}; lower the two, "
            "or take another base"
        )


def _check_matches(settings: PopulationSettings, rows: int) -> None:
    """Every match needs a proposal of each problem type, or some members would learn from none."""
    if settings.single:
        return
    meets = math.lcm(settings.teachers, settings.students) // settings.teachers
    if meets > 2 * rows:
        raise UserError(
            f"population.teachers={settings.teachers} and population.students={settings.students}: "
            f"each teacher meets {meets} students in a step and proposes {2 * rows} rows of each "
            "problem type; raise data.train_batch_size (or population.batch_size), or make the "
            "numbers of teachers and students equal",
            key="population.teachers",
        )


def check_parallel(config: Any, settings: PopulationSettings) -> None:
    """GPUs that share a vLLM are of one node and one group; a shared base needs such a sampler."""
    sampler = rollout_settings(config, settings)
    device = OmegaConf.select(config, "trainer.device", default="cuda")
    check_base_placement(settings, settings.quantization, sampler, device)
    group = config.trainer.n_gpus_per_node // (2 if settings.placement == "split" else 1)
    if group % sampler.together:
        key = "actor_rollout_ref.rollout.tensor_model_parallel_size"
        fitting = max(n for n in range(1, sampler.together) if group % n == 0)
        raise UserError(
            f"{key}={sampler.together} does not divide the {group} GPUs of a node that hold the "
            f"same members; set {key}={fitting}",
            key=key,
        )


def _check_ray(config: Any) -> None:
    """Ray itself refuses this late, and does not say which of AZR's keys it is about."""
    address = os.environ.get("RAY_ADDRESS")
    cpus = OmegaConf.select(config, "ray_init.num_cpus")
    if address and cpus is not None:
        raise UserError(
            f"RAY_ADDRESS={address} joins a Ray that is running, which has its own CPUs; set "
            f"ray_init.num_cpus=null (it is {cpus}), or unset RAY_ADDRESS"
        )


def _check_seeds(config: Any, rows: int) -> None:
    """AZR draws a batch of tasks to solve without repeats, so a seed file has to hold as many."""
    needed = rows * config.azr.data_selection_strategy.update_iteration
    types_by_key = {
        "azr.seed_dataset": ("code_i", "code_o"),
        "azr.error_seed_dataset": ("code_e",),
        "azr.code_f_seed_dataset": ("code_f",),
    }
    for key, problem_types in types_by_key.items():
        path = OmegaConf.select(config, key)
        if path is None or not set(problem_types) & set(config.azr.problem_types):
            continue
        try:
            with open(path, encoding="utf-8") as file:
                lines = sum(1 for line in file if line.strip())
        except OSError as error:
            raise UserError(f"{key}={path} cannot be read: {error.strerror}", key=key) from error
        if lines < needed:
            raise UserError(
                f"{key}={path} holds {lines} tasks, and {needed} different ones are drawn for a "
                "step; lower data.train_batch_size (or population.batch_size), or give more seed "
                "tasks",
                key=key,
            )


def _versions() -> str:
    names = ("verl", "ray", "torch", "azr-population")
    versions = [f"{name} {installed(name)}" if installed(name) else f"no {name}" for name in names]
    return f"it was made for {TESTED} and found {', '.join(versions)}"
