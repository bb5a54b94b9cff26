"""Loading the frozen base model and its tokenizer from a Hugging Face folder."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from azr_population.errors import UserError

_SAMPLES, _SAMPLE_BYTES = 64, 1 << 16
"""Of a file of weights: 4 MB spread over it tell two bases apart without reading all of 15 GB."""


def fingerprint(path: str | Path) -> str:
    """Twelve hex digits that tell a base by its weights, wherever it lies."""
    found = hashlib.sha256()
    folder = Path(path).expanduser()
    for file in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")]):
        size = file.stat().st_size
        found.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as weights:
            for sample in range(_SAMPLES):
                weights.seek(max(0, size - _SAMPLE_BYTES) * sample // (_SAMPLES - 1))
                found.update(weights.read(_SAMPLE_BYTES))
    return found.hexdigest()[:12]


def load_base(path: str | Path, dtype: str, device: str) -> tuple[nn.Module, Any]:
    """The causal LM (eval mode, on `device`) and its fast tokenizer.

    Raises:
        UserError: no such folder, no model or tokenizer in it, or no such device.
    """
    # Imported late: transformers takes seconds, and `--help` must not.
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise UserError(
            f"base.path={path} is not a folder; give the folder of a Hugging Face causal LM "
            "(config.json, model.safetensors, tokenizer.json)"
        )
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"engine.device={device}: torch sees no GPU; use engine.device=cpu")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, torch_dtype=getattr(torch, dtype))
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"base.path={path} does not load as a causal LM: {reason}") from error
    if "logits_to_keep" not in inspect.signature(model.forward).parameters:
        raise UserError(
            f"base.path={path}: {type(model).__name__} cannot keep part of its logits; use a model "
            "of a newer architecture, such as Qwen2, Qwen3, Llama or Gemma"
        )
    if tokenizer.eos_token_id is None:
        raise UserError(f"base.path={path}: its tokenizer has no end-of-sequence token")
    return model.to(device).eval(), tokenizer
