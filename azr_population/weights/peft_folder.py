"""Members as PEFT folders, which `PeftModel.from_pretrained` and vLLM load; bit-exact both ways.

The layout is PEFT's own (peft 0.15, `PeftModel.save_pretrained`): adapter_config.json,
adapter_model.safetensors with `base_model.model.<layer>.lora_A.weight`, and a README.md.
"""

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from azr_population.errors import UserError
from azr_population.files import read_json, refuse_irregular, replacing_folder
from azr_population.weights.adapter import Adapter, Factors, LoraSpec, refuse_unsound
from azr_population.weights.model_card import model_card

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
PREFIX = "base_model.model."
_DTYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
"""Accepted dtypes of factors; torch cannot add and multiply smaller floats."""

UNSUPPORTED = (
    "use_dora", "use_rslora", "lora_bias", "rank_pattern", "alpha_pattern", "modules_to_save",
    "layer_replication", "trainable_token_indices", "fan_in_fan_out", "use_qalora",
    "target_parameters", "lora_ga_config", "corda_config", "eva_config", "megatron_config",
    "alora_invocation_tokens", "arrow_config", "use_bdlora",
)  # fmt: skip
"""Fields of LoraConfig that must be empty or false: otherwise the adapter is not alpha/r B A on
linear layers with one rank and alpha."""

LARGEST_SETTINGS = {"r": 4096, "lora_alpha": 1e6}
LARGEST_SCALING = 1e4
"""Far above any trained adapter's scaling; beyond it products of factors overflow."""


def save_adapter(
    adapter: Adapter,
    folder: str | os.PathLike[str],
    base_model: str,
    readme: Mapping[str, object] | None = None,
    overwrite: bool = False,
) -> None:
    """Writes the member as a PEFT folder: complete or not at all.

    `base_model` is the path or hub name of the base (`base_model_name_or_path`); `readme` has the
    facts of README.md (lineage, rating), a line each. With `overwrite` an existing adapter folder
    is replaced as a whole.

    Raises UserError: the folder already exists or cannot be written.
    """
    folder = Path(folder)
    if folder.exists() and not overwrite:
        raise UserError(f"{folder} exists already; name another folder or remove it")
    if folder.exists() and not (folder / CONFIG_FILE).is_file() and any(folder.iterdir()):
        raise UserError(f"{folder} is not an adapter folder, so it is not replaced")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with replacing_folder(folder) as partial:
            partial.mkdir()
            _write_files(adapter, partial, base_model, readme or {})
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot write {folder}: {reason}") from error


def load_adapter(folder: str | os.PathLike[str]) -> Adapter:
    """The member in a PEFT folder, with its stored dtype, on the CPU. Raises UserError: the folder
    is not a LoRA folder, is damaged, or uses a variant of LoRA that is not dW = alpha/r B A with
    one rank and alpha for all layers."""
    folder = Path(folder)
    config = read_config(folder)
    tensors = _read_tensors(folder / WEIGHTS_FILE)
    factors = _pair(tensors, folder)
    rank = int(config["r"])
    for name, pair in factors.items():
        if pair.A.dim() != 2 or pair.B.dim() != 2 or not pair.A.numel() or not pair.B.numel():
            raise UserError(f"{folder}: {name} is not two matrices, as a linear layer's are")
        if not {pair.A.dtype, pair.B.dtype} <= _DTYPES:
            kinds = f"{pair.A.dtype} and {pair.B.dtype}"
            raise UserError(f"{folder}: {name} holds {kinds}, not floats of 16 bits or more")
        if pair.A.shape[0] != rank or pair.B.shape[1] != rank:
            raise UserError(f"{folder}: {name} has rank {pair.A.shape[0]}, its config says {rank}")
    targets = config.get("target_modules")
    if not isinstance(targets, list):
        targets = {name.rpartition(".")[2] for name in factors}
    spec = LoraSpec(rank, float(config["lora_alpha"]), tuple(sorted(targets)))
    adapter = Adapter(spec, factors)
    refuse_unsound(adapter, str(folder))
    return adapter


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The folder's adapter_config.json, checked to be a plain LoRA; raises UserError if not."""
    path = Path(folder) / CONFIG_FILE
    if not path.exists():
        raise UserError(f"{folder} is not an adapter folder: it has no {CONFIG_FILE}")
    config = read_json(path)
    if not isinstance(config, dict) or config.get("peft_type") != "LORA":
        raise UserError(f"{path} does not describe a LoRA adapter (peft_type is not LORA)")
    for field in UNSUPPORTED:
        if config.get(field):
            raise UserError(f"{folder} uses {field}; a member is alpha/r B A alone", key=field)
    if config.get("bias", "none") != "none":
        raise UserError(f"{folder} trains biases (bias={config['bias']}); members have none")
    for field, most in LARGEST_SETTINGS.items():
        value = config.get(field)
        if not isinstance(value, (int, float)) or type(value) is bool or not 0 < value <= most:
            raise UserError(f"{path}: {field}={_shown(value)} is not a number from 0 to {most:g}")
    if config["lora_alpha"] / config["r"] > LARGEST_SCALING:
        raise UserError(f"{path}: lora_alpha / r is above {LARGEST_SCALING:g}")
    if config["r"] != int(config["r"]):
        raise UserError(f"{path}: r={config['r']} is not a whole number")
    targets = config.get("target_modules")
    listed = targets if isinstance(targets, list) else [targets or ""]
    if not all(isinstance(name, str) for name in listed):
        raise UserError(f"{path}: target_modules={targets} are not all names")
    return config


def _shown(value: object) -> str:
    """The value for a message; Python refuses to print integers of over 4,300 digits."""
    huge = isinstance(value, int) and value.bit_length() > 64
    return "a huge integer" if huge else f"{value!r:.60}"


def _write_files(
    adapter: Adapter, folder: Path, base_model: str, readme: Mapping[str, object]
) -> None:
    save_file(peft_tensors(adapter), folder / WEIGHTS_FILE, metadata={"format": "pt"})
    config = peft_config(adapter, base_model)
    (folder / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    # safetensors makes its file readable for its owner only, but a server may be another user.
    shutil.copymode(folder / CONFIG_FILE, folder / WEIGHTS_FILE)
    (folder / "README.md").write_text(model_card(adapter, base_model, readme), encoding="utf-8")


def peft_tensors(adapter: Adapter) -> dict[str, torch.Tensor]:
    """The factors by their names in PEFT's file, contiguous, on their device."""
    tensors: dict[str, torch.Tensor] = {}
    for name, pair in adapter.factors.items():
        tensors[f"{PREFIX}{name}.lora_A.weight"] = pair.A.detach().contiguous()
        tensors[f"{PREFIX}{name}.lora_B.weight"] = pair.B.detach().contiguous()
    return tensors


def peft_config(adapter: Adapter, base_model: str) -> dict[str, object]:
    """The content of PEFT's adapter_config.json."""
    spec = adapter.spec
    # vLLM and older PEFT reject all-linear in a list, so the layers' names are written.
    targets = set(spec.target_modules)
    if "all-linear" in targets:
        targets = {name.rpartition(".")[2] for name in adapter.factors}
    return {
        "base_model_name_or_path": base_model,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": int(spec.alpha) if spec.alpha == int(spec.alpha) else spec.alpha,
        "lora_dropout": 0.0,
        "peft_type": "LORA",
        "r": spec.rank,
        "target_modules": sorted(targets),
        "task_type": "CAUSAL_LM",
        "use_dora": False,
        "use_rslora": False,
    }


def _read_tensors(path: Path) -> dict[str, torch.Tensor]:
    refuse_irregular(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged or cut short: {error}") from error


def _pair(tensors: Mapping[str, torch.Tensor], folder: Path) -> dict[str, Factors]:
    """Tensors by file key -> factors by layer name, in the file's order of lora_A."""
    pairs: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        name, _, kind = key.removeprefix(PREFIX).removesuffix(".weight").rpartition(".")
        if kind not in ("lora_A", "lora_B") or key != f"{PREFIX}{name}.{kind}.weight":
            raise UserError(f"{folder}/{WEIGHTS_FILE} holds {key}, which is not a LoRA factor")
        pairs.setdefault(name, {})[kind] = tensor
    odd = [name for name, pair in pairs.items() if len(pair) < 2]
    if odd or not pairs:
        raise UserError(f"{folder}/{WEIGHTS_FILE} lacks both factors of {odd[0] if odd else 'all'}")
    return {name: Factors(pair["lora_A"], pair["lora_B"]) for name, pair in pairs.items()}
