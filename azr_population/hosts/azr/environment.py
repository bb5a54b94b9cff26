"""The environment of an AZR run: base, GPUs, vLLM, files and nodes; nothing is loaded."""

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from azr_population.config.inside_azr import PopulationSettings
from azr_population.engines.base_folder import base_folder, read_config
from azr_population.engines.memory import GIB
from azr_population.engines.throughput import DEVICES, Device, device_of, gpu_bytes
from azr_population.errors import UserError, first_line

BASE = "actor_rollout_ref.model.path"
_DRIVER = 0.993
"""What torch sees of the memory that nvidia-smi tells."""


def missing(config: Any, settings: PopulationSettings) -> Iterator[str]:
    """What is missing, a line each with the way out."""
    yield from _base(str(config.actor_rollout_ref.model.path))
    device = OmegaConf.select(config, "trainer.device", default="cuda")
    if device == "cuda":
        yield from _gpus(config)
    if config.actor_rollout_ref.rollout.name == "vllm" and not _there("vllm", "msgspec"):
        yield (
            "AZR itself imports vLLM for actor_rollout_ref.rollout.name=vllm, and there is none; "
            "install it, or set actor_rollout_ref.rollout.name=hf (population.rollout says what "
            "samples)"
        )
    for key in ("data.train_files", "data.val_files"):
        path = OmegaConf.select(config, key)
        if path and "://" not in str(path) and not Path(str(path)).expanduser().exists():
            yield f"{key}={path} is not there; AZR is run from its checkout, which has it"


def describe(path: str) -> Any:
    """The transformers configuration of a base, from its folder or the Hub. Raises UserError: there
    is none."""
    folder = base_folder(path, weights=False, key=BASE)
    try:
        return read_config(folder)
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{BASE}={path} is not a causal LM: {first_line(error)}") from error


@dataclass(frozen=True)
class Machine:
    """GPUs as far as they are known: how many, of what kind, and each one's bytes for torch."""

    gpus: int
    device: Device
    bytes_each: float
    known: bool


def machine_of(config: Any, settings: PopulationSettings) -> Machine:
    """As the command, `population.gpu` and `population.gpu_memory` say, or as this machine's
    smallest GPU is. Raises UserError: no such kind."""
    gpus = int(config.trainer.n_gpus_per_node) * int(config.trainer.nnodes)
    name, gib = settings.gpu, settings.gpu_memory
    if name is not None and name not in DEVICES:
        raise UserError(f"population.gpu={name} is unknown; choose from {', '.join(DEVICES)}")
    if name is not None or gib is not None:
        device = DEVICES[name] if name is not None else device_of(gib or 0.0)
        return Machine(gpus, device, gpu_bytes(device) if gib is None else gib * GIB, True)
    command = ["nvidia-smi", "--query-gpu=memory.total,name", "--format=csv,noheader,nounits"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        lines = [line.partition(", ") for line in listed.stdout.splitlines()]
        mib, product = min((float(mib), product) for mib, _, product in lines)
    except (OSError, ValueError, subprocess.SubprocessError):
        return Machine(gpus, Device(), gpu_bytes(Device()), False)
    return Machine(gpus, device_of(mib / 1024, product), mib * _DRIVER * 2**20, True)


def _base(path: str) -> Iterator[str]:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        try:
            describe(path)
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


def _gpus(config: Any) -> Iterator[str]:
    import torch

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
