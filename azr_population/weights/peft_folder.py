"""Members as PEFT folders, which `PeftModel.from_pretrained` and vLLM load; bit-exact both ways.

The layout is PEFT's own (peft 0.15, `PeftModel.save_pretrained`): adapter_config.json,
adapter_model.safetensors with `base_model.model.<layer>.lora_A.weight`, and a README.md.
"""

import json
import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from azr_population.errors import UserError, first_problem
from azr_population.files import if_supported, read_json, refuse_irregular, replacing_folder
from azr_population.weights.adapter import Adapter, Factors, LoraSpec, matches, refuse_unsound
from azr_population.weights.model_card import model_card

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
PREFIX = "base_model.model."
_DTYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
"""Accepted dtypes of factors; torch cannot add and multiply smaller floats."""

HARMLESS = frozenset((
    "peft_type", "r", "lora_alpha", "bias", "target_modules", "init_lora_weights",  # checked
    "base_model_name_or_path", "revision", "task_type", "peft_version", "auto_mapping",
    "inference_mode", "lora_dropout",
    "exclude_modules", "layers_to_transform", "layers_pattern", "ensure_weight_tying",
    "loftq_config", "eva_config", "corda_config", "megatron_core", "qalora_group_size",
))  # fmt: skip
"""Fields of LoraConfig that leave an adapter alpha/r B A on linear layers with one rank and alpha,
whatever they hold: which layers have factors is read from the file. Any other field must be empty
or false, those that later versions of PEFT invent too."""

_INITIALISATIONS = (True, False, None, "gaussian", "eva", "orthogonal")
"""Values of `init_lora_weights` that leave the base as it is. The others (pissa, olora, corda,
loftq, lora_ga) change its weights, and their adapters mean nothing without that change."""

LARGEST_SCALING = 1e4
"""Far above any trained adapter's scaling; beyond it products of factors overflow."""


class _LoraConfig(BaseModel):
    """The fields of adapter_config.json that a member depends on."""

    model_config = ConfigDict(strict=True)

    peft_type: Literal["LORA"]
    r: int = Field(gt=0, le=4096)
    lora_alpha: float = Field(gt=0, le=1e6)
    bias: Literal["none"] = "none"
    target_modules: list[str] | str | None = None


def save_adapter(
    adapter: Adapter,
    folder: str | os.PathLike[str],
    base_model: str,
    readme: Mapping[str, object] | None = None,
) -> None:
    """Writes the member as a PEFT folder: complete or not at all.

    `base_model` is the path or hub name of the base (`base_model_name_or_path`); `readme` has the
    facts of README.md (lineage, rating), a line each.

    Raises UserError: the folder already exists or cannot be written.
    """
    folder = Path(folder)
    if os.path.lexists(folder):
        raise UserError(f"{folder} exists already; name another folder or remove it")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with replacing_folder(folder) as partial:
            partial.mkdir()
            weights, settings = partial / WEIGHTS_FILE, partial / CONFIG_FILE
            save_file(peft_tensors(adapter), weights, metadata={"format": "pt"})
            config = json.dumps(peft_config(adapter, base_model), indent=2)
            settings.write_text(config + "\n", encoding="utf-8")
            # safetensors makes its file readable for its owner only; a server may be another user.
            with if_supported():
                shutil.copymode(settings, weights)
            card = model_card(adapter, base_model, readme or {})
            (partial / "README.md").write_text(card, encoding="utf-8")
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"cannot write {folder}: {reason}") from error


def load_adapter(folder: str | os.PathLike[str]) -> Adapter:
    """The member in a PEFT folder, with its stored dtype, on the CPU. Raises UserError: the folder
    is not a LoRA folder, is damaged, or uses a variant of LoRA that is not dW = alpha/r B A with
    one rank and alpha for all layers."""
    folder = Path(folder)
    config = read_config(folder)
    weights = folder / WEIGHTS_FILE
    refuse_irregular(weights)
    try:
        factors = _pair(load_file(weights), folder)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{weights} is damaged or cut short: {error}") from error
    rank = config["r"]
    for name, pair in factors.items():
        if pair.A.dim() != 2 or pair.B.dim() != 2 or not pair.A.numel() or not pair.B.numel():
            raise UserError(f"{folder}: {name} is not two matrices, as a linear layer's are")
        if not {pair.A.dtype, pair.B.dtype} <= _DTYPES:
            kinds = f"{pair.A.dtype} and {pair.B.dtype}"
            raise UserError(f"{folder}: {name} holds {kinds}, not floats of 16 bits or more")
        if pair.A.shape[0] != rank or pair.B.shape[1] != rank:
            raise UserError(f"{folder}: {name} has rank {pair.A.shape[0]}, its config says {rank}")
    adapter = Adapter(_spec(config, factors), factors)
    refuse_unsound(adapter, str(folder))
    return adapter


def read_spec(folder: str | os.PathLike[str]) -> LoraSpec:
    """The shape of the member in a PEFT folder, from its configuration and the names of its
    weights, which are not read. Raises UserError: the folder is not a LoRA folder, or is
    damaged."""
    config, weights = read_config(folder), Path(folder) / WEIGHTS_FILE
    refuse_irregular(weights)
    try:
        with safe_open(weights, "pt") as file:
            keys = file.keys()
    except (SafetensorError, OSError) as error:
        raise UserError(f"{weights} is damaged or cut short: {error}") from error
    return _spec(config, [key.removeprefix(PREFIX).rpartition(".lora_")[0] for key in keys])


def _spec(config: Mapping[str, Any], layers: Collection[str]) -> LoraSpec:
    """The shape of an adapter of these layers."""
    targets = config.get("target_modules")
    if isinstance(targets, list):  # PEFT takes names that match nothing
        targets = [t for t in targets if any(matches(name, t) for name in layers)]
    else:
        targets = {name.rpartition(".")[2] for name in layers}
    return LoraSpec(config["r"], float(config["lora_alpha"]), tuple(sorted(targets)))


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The folder's adapter_config.json, checked to be a plain LoRA; raises UserError if not."""
    path = Path(folder) / CONFIG_FILE
    if not path.exists():
        raise UserError(f"{folder} is not an adapter folder: it has no {CONFIG_FILE}")
    config: dict[str, Any] = read_json(path)
    try:
        fields = _LoraConfig.model_validate(config)
    except ValidationError as error:
        raise UserError(f"{path} does not describe a member: {first_problem(error)}") from error
    for field, value in config.items():
        if value and field not in HARMLESS:
            raise UserError(f"{folder} uses {field}; a member is alpha/r B A alone", key=field)
    if (start := config.get("init_lora_weights", True)) not in _INITIALISATIONS:
        raise UserError(
            f"{folder} was trained with init_lora_weights={start}, which changes the base's own "
            "weights; save it in PEFT with path_initial_model_for_weight_conversion, or train with "
            "another initialisation",
            key="init_lora_weights",
        )
    if fields.lora_alpha / fields.r > LARGEST_SCALING:
        raise UserError(f"{path}: lora_alpha / r is above {LARGEST_SCALING:g}")
    return config


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
