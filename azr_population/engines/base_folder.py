"""A base's folder and its config.json, whichever transformers wrote it.

transformers 5 stores all of RoPE in `rope_parameters`. transformers 4 silently ignores that field
and uses its defaults (a theta of 10,000): the model seems to work, and solves half as much.
transformers 5 reads what transformers 4 writes (tests/engines/test_base_config.py tests both
directions).
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import nn

from azr_population.errors import UserError, first_line
from azr_population.weights.model_card import HUB_NAME

_DESCRIPTION = ["*.json", "*.txt", "*.model", "*.jinja"]
_WEIGHTS = ["*.safetensors"]
_EXECUTABLE = frozenset(
    (".py", ".pyc", ".so", ".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib")
)
"""Suffixes of modules and pickles."""
_LOADED_INSTEAD = frozenset(("custom_generate", "adapter_config.json"))
MOST_MODULES = 10_000
"""Layers or experts of a base."""
_UNREADABLE = (
    OSError, ValueError, KeyError, ImportError, RuntimeError, UnpicklingError, SafetensorError,
    StrictDataclassError,
)  # fmt: skip
"""Errors of transformers about a folder: ImportError for the package of a quantisation,
RuntimeError for weights of other shapes, StrictDataclassError for values of another type or that do
not fit."""


def base_folder(path: str | Path, weights: bool = True, key: str = "base.path") -> Path:
    """The folder of a base.

    `path` is a folder, or a name on the Hub: then the folder is in Hugging Face's cache, where the
    base is put if it is not there yet, without `weights` only what describes it.

    Raises UserError: it is neither, cannot be had from the Hub, or holds code or a
    configuration of more than `MOST_MODULES` layers.
    """
    folder = Path(os.path.expanduser(path))
    if not folder.is_dir():
        folder = _from_hub(path, weights, key)
    _check_contents(folder, f"{key}={path}", key)
    return folder


def _from_hub(path: str | Path, weights: bool, key: str) -> Path:
    if isinstance(path, Path) or not HUB_NAME.fullmatch(path):
        raise UserError(
            f"{key}={path} is not a folder; give the folder of a Hugging Face causal LM "
            "(config.json, model.safetensors, tokenizer.json), or its name on the Hub",
            key=key,
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    patterns = [*_DESCRIPTION, *(_WEIGHTS if weights else [])]
    try:
        return Path(snapshot_download(path, allow_patterns=patterns))
    except (OSError, ValueError, HfHubHTTPError) as error:
        name = path.rpartition("/")[2]
        raise UserError(
            f"{key}={path} is not a folder, and cannot be downloaded from the Hugging Face Hub "
            f"({type(error).__name__}); without a network: on a machine that has one, hf download "
            f"{path} --local-dir {name}, copy that folder here, and give {key}=./{name}",
            key=key,
        ) from error


def _check_contents(folder: Path, name: str, key: str) -> None:
    """Raises UserError for what a library may run although it is told not to trust the folder, and
    for numbers of layers that would fill the memory before any weight is read.

    transformers 4 imports `custom_generate/` of every local folder. An adapter's configuration
    makes it load another folder instead of this one.
    """
    for file in sorted(folder.iterdir()):
        fields = json_fields(file) if file.name.endswith("config.json") else {}
        if file.name in _LOADED_INSTEAD or file.suffix.lower() in _EXECUTABLE:
            what = file.name
        elif "auto_map" in fields:
            what = f"auto_map in {file.name}"
        elif many := [item for item in _numbers_of_modules(fields) if item[1] > MOST_MODULES]:
            field, number = many[0]
            raise UserError(
                f"{name}: {file.name} has {field}={number:,.0f}; at most {MOST_MODULES:,} are "
                "loaded",
                key=key,
            )
        else:
            continue
        raise UserError(
            f"{name} holds {what}, which can run code or load something else; a base is JSON and "
            "safetensors: remove it, or save the base anew by save_pretrained",
            key=key,
        )


def json_fields(file: Path) -> dict[str, Any]:
    """The fields in a JSON file; none if there is no file, or a damaged one, which transformers
    refuses itself."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _numbers_of_modules(fields: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Names and values of the numbers of layers and experts, those of nested models too."""
    for name, value in fields.items():
        if isinstance(value, dict):
            yield from _numbers_of_modules(value)
        elif isinstance(value, (int, float)) and re.search("layers?$|experts$", name):
            yield name, value


@contextmanager
def loading(path: str | Path, key: str = "base.path") -> Iterator[None]:
    """Inside, what transformers raises about a base's files becomes a `UserError` that names
    `key`. Pass `trust_remote_code=False`, or transformers asks on standard input whether to run the
    code in the folder."""
    try:
        yield
    except Exception as error:
        # Of tokenizers' own errors nothing but the type is known: they are plain Exceptions.
        if not (isinstance(error, _UNREADABLE) or type(error) is Exception):
            raise
        reason = first_line(error).partition(". ")[0]
        raise UserError(f"{key}={path} does not load as a causal LM: {reason}", key=key) from error


def meta_model(folder: Path) -> Any:
    """The causal LM in a folder without its weights, on torch's meta device, in float32; use it
    inside `loading`."""
    import torch
    from transformers import AutoModelForCausalLM

    description = read_config(folder)
    with torch.device("meta"):
        model: nn.Module = AutoModelForCausalLM.from_config(description, trust_remote_code=False)
    return model


def context_of(model: Any) -> int | None:
    """Tokens of the base's context, RoPE scaling included as vLLM counts it (`factor` times what it
    was trained for); None if its configuration does not have it."""
    trained: int | None = getattr(model.config, "max_position_embeddings", None)
    # transformers 5 has it beside the rotary period, under both names.
    scaling = getattr(model.config, "rope_scaling", None) or {}
    if trained is None or scaling.get("rope_type") not in ("yarn", "linear", "dynamic"):
        return trained
    return int(scaling["factor"] * (scaling.get("original_max_position_embeddings") or trained))


def read_config(folder: Path) -> Any:
    """The configuration in a base's folder, as the installed transformers is to have it; use it
    inside `loading`. Raises UserError: transformers 5 wrote it, and the installed one has no name
    for a part of it."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    for name, value in rope_overrides(config, folder).items():
        setattr(config, name, value)
    return config


def rope_overrides(config: Any, folder: Path) -> dict[str, Any]:
    """RoPE in transformers 4's names, where 4 is installed and 5 wrote the folder. Raises UserError
    where 4 has no name for a part, or RoPE differs by kind of layer (Gemma 3)."""
    import transformers

    rope = dict(getattr(config, "rope_parameters", None) or {})
    if inner := getattr(getattr(config, "text_config", None), "rope_parameters", None):
        rope = {"text_config": inner}
    if not rope or not transformers.__version__.startswith("4."):
        return {}
    fields = {
        name: rope.pop(name) for name in ("rope_theta", "partial_rotary_factor") if name in rope
    }
    if rope.get("rope_type", "default") != "default":
        fields["rope_scaling"] = rope
    by_layer = [kind for kind, value in rope.items() if isinstance(value, dict)]
    if unnamed := by_layer + [name for name in fields if not hasattr(config, name)]:
        raise UserError(
            f"{folder}/config.json was written by transformers 5, and its rope_parameters "
            f"({unnamed[0]}) have no name in the installed {transformers.__version__}; use "
            "transformers 5 (constraints/current.txt), or a folder that transformers 4 saved"
        )
    return fields
