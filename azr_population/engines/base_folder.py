"""Where a base lies: in a folder, or under a name on the Hugging Face Hub."""

import re
from pathlib import Path
from typing import Any

from torch import nn

from azr_population.errors import UserError

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
"""`Qwen/Qwen2.5-Coder-1.5B`; a path that begins with `.`, `/` or `~` is none."""
_DESCRIPTION = ["*.json", "*.txt", "*.model", "*.jinja"]
_WEIGHTS = ["*.safetensors"]


def base_folder(path: str | Path, weights: bool = True) -> Path:
    """The folder of a base.

    `path` is a folder, or a name on the Hub: then the folder is in Hugging Face's cache, where the
    base is put if it is not there yet, without `weights` only what describes it.

    Raises UserError: it is neither, or cannot be had from the Hub.
    """
    folder = Path(path).expanduser()
    if folder.is_dir():
        return folder
    if isinstance(path, Path) or not _HUB_NAME.fullmatch(path):
        raise UserError(
            f"base.path={path} is not a folder; give the folder of a Hugging Face causal LM "
            "(config.json, model.safetensors, tokenizer.json), or its name on the Hub",
            key="base.path",
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    patterns = [*_DESCRIPTION, *(_WEIGHTS if weights else [])]
    try:
        return Path(snapshot_download(path, allow_patterns=patterns))
    except (OSError, ValueError, HfHubHTTPError) as error:
        name = path.rpartition("/")[2]
        raise UserError(
            f"base.path={path} is no folder, and cannot be had from the Hugging Face Hub "
            f"({type(error).__name__}); without a network: on a machine that has one, hf download "
            f"{path} --local-dir {name}, copy that folder here, and give base.path=./{name}",
            key="base.path",
        ) from error


def meta_model(folder: Path) -> Any:
    """The causal LM in a folder without its weights, on torch's meta device, in float32.

    Raises:
        UserError: see `read_config`.
        OSError, ValueError, KeyError: there is none.
    """
    import torch
    from transformers import AutoModelForCausalLM

    from azr_population.engines.base_config import read_config

    description = read_config(folder)
    with torch.device("meta"):
        model: nn.Module = AutoModelForCausalLM.from_config(description)
    return model


def context_of(model: Any) -> int | None:
    """Tokens of the longest row that the base is good for, RoPE scaling included as vLLM counts it
    (`factor` times what it was trained for); None where its configuration does not tell it."""
    trained: int | None = getattr(model.config, "max_position_embeddings", None)
    # transformers 5 has it beside the rotary period, under both names.
    scaling = getattr(model.config, "rope_scaling", None) or {}
    if trained is None or scaling.get("rope_type") not in ("yarn", "linear", "dynamic"):
        return trained
    return int(scaling["factor"] * (scaling.get("original_max_position_embeddings") or trained))
