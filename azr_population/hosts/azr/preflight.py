"""What can be known before any model is loaded: is the host ours, can we do what it asks for.

Everything wrong is a `UserError` of one line that names what was expected and what was found.
"""

from __future__ import annotations

import importlib
import inspect
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from omegaconf import OmegaConf

from azr_population.config.inside_azr import PopulationSettings
from azr_population.domains.known import find_domain
from azr_population.engines.assembly import check_rollout, check_shard, resolve
from azr_population.errors import UserError, first_line
from azr_population.hosts.azr import environment, overrides
from azr_population.hosts.azr.settings import DOMAIN, rollout_settings
from azr_population.versions import installed

ENTRY = "absolute_zero_reasoner.main_azr_ppo"
TESTED = "AZR a82124e with verl 0.4.1"

SURFACE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "absolute_zero_reasoner.trainer.ppo.azr_ray_trainer": {
        "CodeIORayPPOTrainer._compute_batch": (
            "batch", "metrics", "timing_raw", "problem_type", "executor",
        ),
        "CodeIORayPPOTrainer._create_train_code_gen_dataloader": (
            "problem_type", "data_len", "dataset_key", "seeding",
        ),
        "CodeIORayPPOTrainer._create_train_code_pred_dataloader": ("problem_type", "data_len"),
        "CodeIORayPPOTrainer._validate": (),
        "CodeIORayPPOTrainer._save_checkpoint": (),
        "CodeIORayPPOTrainer._load_checkpoint": (),
        "CodeIORayPPOTrainer.fit": (),
    },
    "absolute_zero_reasoner.rewards.reward_managers": {
        "CodeIORewardManager.__call__": ("data", "problem_type", "executor", "rollout_actor_wg"),
        "CodeIORewardManager._get_problem_generator_rewards_and_valid_programs": (
            "data_dicts", "problem_type", "n_samples", "rollout_actor_wg", "executor",
        ),
    },
    "verl.single_controller.ray": {
        "RayWorkerGroup.__init__": ("resource_pool", "ray_cls_with_init", "device_name"),
        "RayClassWithInitArgs.__init__": ("cls",),
        "RayResourcePool.__init__": ("process_on_nodes", "use_gpu", "max_colocate_count"),
    },
    "verl.single_controller.base.decorator": {
        "register": ("dispatch_mode", "execute_mode", "blocking"),
    },
    "verl.trainer.ppo.ray_trainer": {
        "compute_advantage": ("data", "adv_estimator", "gamma", "lam", "num_repeat", "config"),
    },
}  # fmt: skip
"""What the plugin calls or overrides, and the parameters that it counts on."""


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
    for module_name, symbols in SURFACE.items():
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise UserError(f"{module_name} cannot be imported ({error}); {_versions()}") from error
        for symbol, expected in symbols.items():
            _check_symbol(module, symbol, expected)


def check_config(config: Any, settings: PopulationSettings) -> None:
    """Refuses what AZR can do and a population cannot, and budgets that do not come out even.

    Raises:
        UserError: naming the key, its value and the way out.
    """
    overrides.refuse(config)
    known = list(find_domain(DOMAIN).types)
    for problem_type in config.azr.problem_types:
        if problem_type not in known:
            raise UserError(
                f"azr.problem_types holds {problem_type}, which +population does not know; "
                f"choose from {', '.join(known)}"
            )
    if settings.placement == "split" and config.trainer.n_gpus_per_node % 2:
        raise UserError(
            f"population.placement=split halves the workers of each node, and "
            f"trainer.n_gpus_per_node={config.trainer.n_gpus_per_node} is odd; make it even, or "
            "use population.placement=colocated",
            key="population.placement",
        )
    device = OmegaConf.select(config, "trainer.device", default="cuda")
    check_rollout(resolve(settings.rollout, device), settings.lora.rank)
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
    from azr_population.weights.adapter import LoraSpec
    from azr_population.weights.bank import target_layers

    try:
        model = meta_model(folder)
    except (OSError, ValueError, KeyError) as error:
        reason = first_line(error)
        raise UserError(
            f"actor_rollout_ref.model.path={folder} is no causal LM: {reason}"
        ) from error
    lora = settings.lora
    # Raises where there are none, with the names that there are.
    target_layers(model, LoraSpec(lora.rank, lora.alpha, tuple(lora.target_modules)))
    prompt, response = config.data.max_prompt_length, config.data.max_response_length
    context = context_of(model)
    if context is not None and prompt + response > context:
        raise UserError(
            f"data.max_prompt_length={prompt} and data.max_response_length={response} make rows of "
            f"{prompt + response} tokens, and the context of {folder} is {context}; lower the two, "
            "or take another base"
        )


def check_environment(config: Any, settings: PopulationSettings) -> None:
    """Refuses a run whose base, GPUs, vLLM or files are not there.

    Raises:
        UserError: the first of them, and the way out.
    """
    for told in environment.missing(config, settings):
        raise UserError(told)


def check_worker(settings: PopulationSettings) -> None:
    """Refuses a class of workers that cannot be imported.

    Raises:
        UserError: there is no such class.
    """
    from hydra.utils import get_class

    try:
        get_class(settings.worker)
    except (ImportError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(
            f"population.worker={settings.worker} is no class: {reason}", key="population.worker"
        ) from error


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
    if settings.shard_base:
        check_shard(sampler.name)
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
    wanted = {
        "azr.seed_dataset": ("code_i", "code_o"),
        "azr.error_seed_dataset": ("code_e",),
        "azr.code_f_seed_dataset": ("code_f",),
    }
    for key, problem_types in wanted.items():
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


def _check_symbol(module: ModuleType, symbol: str, expected: tuple[str, ...]) -> None:
    function: Any = module
    for part in symbol.split("."):
        function = getattr(function, part, None)
    if function is None:
        raise UserError(
            f"{module.__name__} has no {symbol}, which +population hooks; {_versions()}"
        )
    parameters = inspect.signature(function).parameters
    missing = [name for name in expected if name not in parameters]
    if missing:
        raise UserError(
            f"{module.__name__}:{symbol} takes ({', '.join(parameters)}) and not "
            f"{', '.join(missing)}, which +population counts on; {_versions()}"
        )


def _versions() -> str:
    names = ("verl", "ray", "torch", "azr-population")
    versions = [f"{name} {installed(name)}" if installed(name) else f"no {name}" for name in names]
    return f"it was made for {TESTED} and found {', '.join(versions)}"
