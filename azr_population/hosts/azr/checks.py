"""Checks before any model is loaded: is this the AZR that we hook into, can a population do what
the command asks for, and is everything there that it needs.

Every fault is a `UserError` of one line with what was expected and what was found.
"""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from omegaconf import OmegaConf

from azr_population.config.inside_azr import PopulationSettings
from azr_population.engines.assembly import check_settings
from azr_population.engines.base_folder import (
    base_folder,
    context_of,
    loading,
    meta_model,
    read_config,
)
from azr_population.errors import NotInstalled, UserError, first_line
from azr_population.hosts.azr import overrides
from azr_population.hosts.azr.azr_plan import AzrPlan
from azr_population.hosts.azr.settings import as_typed, run_device
from azr_population.method import config_check
from azr_population.registry import imported
from azr_population.versions import AZR_WANDB, wandb_fault
from azr_population.weights.bank import target_layers

ENTRY = "absolute_zero_reasoner.main_azr_ppo"
BASE = "actor_rollout_ref.model.path"


def check_host(main: ModuleType) -> None:
    """Refuses, with a `UserError`, a host that is not AZR. `main` is the driver's `__main__`, whose
    trainer is to be replaced; patches refuse an AZR whose code is another."""
    for name in ("CodeIORayPPOTrainer", "TaskRunner"):
        if not hasattr(main, name):
            spec = getattr(main, "__spec__", None)
            running = spec.name if spec else getattr(main, "__file__", "an interactive session")
            raise UserError(
                f"+population works in `python -m {ENTRY}`, whose {name} it replaces; "
                f"this is {running}, which has none"
            )


def check_types(config: Any, plan: AzrPlan) -> None:
    """Refuses, with a `UserError`, types of problems that a population cannot play."""
    types = list(plan.domain.types)
    for problem_type in config.azr.problem_types:
        if problem_type not in types:
            raise UserError(
                f"azr.problem_types has {problem_type}, which +population does not support; "
                f"choose from {', '.join(types)}"
            )


def check_worker(plan: AzrPlan) -> None:
    """Refuses, with a `UserError`, a `population.worker` that cannot be imported. Ours needs veRL,
    which AZR brings."""
    if plan.settings.worker != PopulationSettings().worker:
        imported("population.worker", plan.settings.worker)


def check_base(config: Any, plan: AzrPlan) -> None:
    """Refuses, with a `UserError`, a local folder that holds no causal LM or one without the layers
    that the adapters are to sit on, and rows that are longer than its context. A base on the Hub is
    left to the workers."""
    folder = Path(os.path.expanduser(plan.engine.base))
    if not folder.is_dir():
        return
    with loading(folder, BASE):
        model = meta_model(folder)
    # Raises where there are none, with the names that there are.
    target_layers(model, plan.engine.lora)
    prompt, response = config.data.max_prompt_length, config.data.max_response_length
    context = context_of(model)
    if context is not None and prompt + response > context:
        raise UserError(
            f"data.max_prompt_length={prompt} and data.max_response_length={response} make rows of "
            f"{prompt + response} tokens, and the context of {folder} is {context}; lower the two, "
            "or take another base"
        )


def check_matches(plan: AzrPlan) -> None:
    """Every match needs a proposal of each problem type, or some members would learn from none."""
    settings, rows = plan.settings, plan.member_rows
    if settings.single:
        return
    meets = math.lcm(settings.teachers, settings.students) // settings.teachers
    if meets > rows:
        raise UserError(
            f"population.teachers={settings.teachers} and population.students={settings.students}: "
            f"each teacher meets {meets} students in a step and proposes {rows} rows of each "
            "problem type; raise data.train_batch_size (or population.batch_size), or make the "
            "numbers of teachers and students equal",
            key="population.teachers",
        )


def check_seeds(config: Any, rows: int) -> None:
    """AZR draws a batch of tasks to solve without repeats, so a seed file has to hold as many."""
    needed = rows * config.azr.data_selection_strategy.update_iteration
    keys = ["azr.seed_dataset"]  # AZR reads it for code_f alone, too
    keys += ["azr.code_f_seed_dataset"] * ("code_f" in config.azr.problem_types)
    for key in keys:
        path = OmegaConf.select(config, key)
        if path is None:
            continue
        try:
            with open(path, encoding="utf-8") as file:
                lines = sum(1 for line in file if line.strip())
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise UserError(f"{key}={path} cannot be read: {reason}", key=key) from error
        if lines < needed:
            raise UserError(
                f"{key}={path} holds {lines} tasks, and {needed} different ones are drawn for a "
                "step; lower data.train_batch_size (or population.batch_size), or give more seed "
                "tasks",
                key=key,
            )


def check_rows(config: Any, rows: int) -> None:
    """AZR ends without a full batch of `data.train_files`, though its steps draw none from them."""
    files, paths = OmegaConf.select(config, "data.train_files"), _files(config, "data.train_files")
    if not paths or not _there("pyarrow") or not all(map(Path.is_file, paths)):
        return  # `missing` names what is not there
    from pyarrow import ArrowException, parquet

    try:
        held = sum(parquet.read_metadata(path).num_rows for path in paths)
    except (ArrowException, OSError) as error:
        raise UserError(f"data.train_files={files} cannot be read: {first_line(error)}") from error
    if held < rows:
        raise too_few_rows("train", files, held, rows)


def _files(config: Any, key: str) -> list[Path]:
    """The paths under a key that takes one or a list."""
    files = OmegaConf.select(config, key) or []
    return [Path(os.path.expanduser(f)) for f in ([files] if isinstance(files, str) else files)]


def too_few_rows(split: str, files: Any, held: int, batch: int) -> UserError:
    """The fault of AZR's files of a split (`train`, `val`) that hold less than a batch."""
    return UserError(
        f"data.{split}_files={files} holds {held} rows, fewer than a batch of {batch}; lower "
        "data.train_batch_size (or population.batch_size), or give more rows"
    )


def check_parallel(config: Any, plan: AzrPlan) -> None:
    """GPUs that share a vLLM are of one node; for the rest see `check_settings`."""
    gpus, tensor_parallel_size = config.trainer.n_gpus_per_node, plan.engine.tensor_parallel_size
    if gpus % tensor_parallel_size:
        key = "actor_rollout_ref.rollout.tensor_model_parallel_size"
        fitting = max(n for n in range(1, tensor_parallel_size) if gpus % n == 0)
        raise UserError(
            f"{key}={tensor_parallel_size} does not divide the {gpus} GPUs of a node that hold the "
            f"same members; set {key}={fitting}",
            key=key,
        )
    check_settings(plan.engine)


def faults(config: Any, plan: AzrPlan) -> Iterator[UserError]:
    """Everything that AZR can do and a population cannot, settings that no run can work with,
    budgets that do not come out even, and what the base, the GPUs and the loggers do not allow; of
    each check the first fault."""
    yield from overrides.refusals(config)
    all_faults = config_check.faults(
        plan,
        lambda _: check_types(config, plan),
        lambda _: check_matches(plan),
        lambda _: check_seeds(config, plan.rows),
        lambda _: check_rows(config, plan.rows),
        lambda _: check_parallel(config, plan),
        lambda _: check_base(config, plan),
        lambda _: check_wandb(config),
        lambda _: check_worker(plan),
    )
    for fault in all_faults:
        yield type(fault)(as_typed(str(fault)), key=fault.key and as_typed(fault.key))


MAKES_DATA = (
    "azr-population azr --module "
    "absolute_zero_reasoner.data_construction.process_code_reasoning_data"
)
"""Makes the files of AZR's scripts (its README has it with `python -m`), under any veRL."""


def missing(config: Any) -> Iterator[str]:
    """Missing parts of the run, a line each with the way out."""
    yield from _missing_base(str(config.actor_rollout_ref.model.path))
    for key in ("data.train_files", "data.val_files"):
        for path in _files(config, key):
            if ":/" not in str(path) and not path.exists():  # a path has one slash of an address's
                way_out = f"AZR makes its files in its checkout: {MAKES_DATA}"
                yield f"{key}={path} is not there; {way_out}"


def missing_vllm(config: Any) -> Iterator[str]:
    """Missing packages that AZR itself imports with any sampler."""
    if config.actor_rollout_ref.rollout.name == "vllm" and not _there("vllm", "msgspec"):
        yield (
            "AZR itself imports vLLM for actor_rollout_ref.rollout.name=vllm, and there is none; "
            "install it, or set actor_rollout_ref.rollout.name=hf (population.rollout says what "
            "samples)"
        )


STARTED = ("console", "wandb", "tracking")
"""The loggers that AZR starts, the last an old name of wandb; it accepts others of veRL's."""


def check_wandb(config: Any) -> None:
    """Refuses, with a `UserError`, a wandb of another interface than AZR's, where it is to log.
    Raises NotInstalled: there is none."""
    if not {"wandb", "tracking"} & set(_loggers(config)):
        return
    way = "or leave wandb out of trainer.logger"
    if not _there("wandb"):
        raise NotInstalled(
            f"trainer.logger: wandb is not installed; pip install {AZR_WANDB}, {way}"
        )
    if fault := wandb_fault():
        raise UserError(f"trainer.logger: {fault}, {way}", key="trainer.logger")


def unstarted_loggers(config: Any) -> Iterator[str]:
    """Loggers of the command to which AZR writes nothing, a line each."""
    for name in _loggers(config):
        if name not in STARTED:
            lacks = "" if _there(name) else " (nor is it installed)"
            yield f"trainer.logger: AZR starts console and wandb, and no {name}{lacks}"


def _loggers(config: Any) -> list[str]:
    names = OmegaConf.select(config, "trainer.logger") or []
    return [names] if isinstance(names, str) else list(map(str, names))


def _missing_base(path: str) -> Iterator[str]:
    folder = Path(os.path.expanduser(path))
    if not folder.is_dir():
        try:
            config_of_base(path)
        except UserError as error:
            yield str(error)
        return
    needed = {
        "config.json": "config.json",
        "tokenizer*": "tokenizer",
        "*.safetensors": "weights (*.safetensors)",
    }
    if lacks := [words for pattern, words in needed.items() if not any(folder.glob(pattern))]:
        yield f"{BASE}={path} has no {', no '.join(lacks)}; give a Hugging Face causal LM's folder"


def missing_gpus(config: Any) -> Iterator[str]:
    """GPUs that the command asks for and this machine lacks."""
    import torch

    if run_device(config) != "cuda":
        return
    each, nodes = int(config.trainer.n_gpus_per_node), int(config.trainer.nnodes)
    if os.environ.get("RAY_ADDRESS"):
        return  # Ray knows its nodes, and refuses what they have no room for.
    if nodes > 1:
        yield (
            f"trainer.nnodes={nodes} needs a Ray that runs on all of them: set RAY_ADDRESS, or "
            "trainer.nnodes=1"
        )
    seen = torch.cuda.device_count()
    if seen < each:
        gpus = "no GPU" if not seen else f"{seen} GPU{'s' * (seen > 1)}"
        way = f"set trainer.n_gpus_per_node={seen}" if seen else "start on a node with GPUs"
        yield f"trainer.n_gpus_per_node={each} and torch sees {gpus} here; {way}"


def _there(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)


def config_of_base(path: str) -> Any:
    """The transformers configuration of a base, from its folder or the Hub. Raises UserError: there
    is none."""
    folder = base_folder(path, weights=False, key=BASE)
    with loading(path, BASE):
        return read_config(folder)
