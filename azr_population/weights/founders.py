"""Founders from existing adapters: `population.init_from`."""

import os
from collections.abc import Iterable
from pathlib import Path

import torch

from azr_population.errors import UserError
from azr_population.weights.adapter import Adapter, refuse_misfit
from azr_population.weights.lowrank import convert
from azr_population.weights.peft_folder import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    load_adapter,
    read_config,
)


def check_founders(sources: Iterable[str], rank: int) -> None:
    """Checks the adapters' configurations. Raises UserError: an adapter is missing, not a plain
    LoRA, or has too high a rank."""
    for source in dict.fromkeys(sources):
        _refuse_rank(source, read_config(_folder(source))["r"], rank)


def load_founder(source: str, fresh: Adapter, generator: torch.Generator) -> Adapter:
    """The adapter as a member of this run with the same dW, up to rounding if alpha differs.

    Args:
        source: a PEFT folder (such as a run's member), or its name on the Hub.
        fresh: an untrained member of the run (B = 0); it has the run's rank, alpha, layers and
            dtype, and supplies layers that the adapter lacks.
        generator: draws the additional rows of A if the run's rank is higher.

    Raises:
        UserError: not an adapter, a higher rank, or layers or shapes that the run does not have.
    """
    adapter = load_adapter(_folder(source))
    _refuse_rank(source, adapter.spec.rank, fresh.spec.rank)
    return as_member(adapter, fresh, generator, f"{source} and this run's members")


def as_member(adapter: Adapter, fresh: Adapter, generator: torch.Generator, who: str) -> Adapter:
    """A loaded adapter with the rank and modules of `fresh`, whose rank is not lower; `who` names
    both in messages."""
    spec, dtype = fresh.spec, next(iter(fresh.factors.values())).A.dtype
    padded = convert(adapter.map(lambda f: f.to(dtype)), spec.rank, spec.alpha, generator)
    # In the run's order of layers; files may have another.
    founder = Adapter(spec, {**fresh.factors, **padded.factors})
    refuse_misfit(founder, fresh, who)
    return founder


def _refuse_rank(source: str, rank: int, highest: int) -> None:
    if rank > highest:
        raise UserError(
            f"{source} has rank {rank}, this run's adapters {highest}; raise base.lora.rank to "
            f"{rank}"
        )


def _folder(source: str) -> Path:
    """The adapter's folder; from the Hub it is downloaded."""
    folder = Path(os.path.expanduser(source))
    if not folder.is_dir() and (folder.parent / "config.yaml").is_file():
        return folder.parent / "members" / folder.name  # RUN/MEMBER
    if folder.is_dir() or source[:1] in "./~" or source.count("/") != 1:
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return Path(snapshot_download(source, allow_patterns=[CONFIG_FILE, WEIGHTS_FILE]))
    except (OSError, ValueError, HfHubHTTPError) as error:
        raise UserError(
            f"{source} is not a folder, and cannot be downloaded from the Hugging Face Hub "
            f"({type(error).__name__}); give a PEFT folder"
        ) from error
