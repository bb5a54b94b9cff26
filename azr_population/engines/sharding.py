"""The frozen base shared out over the ranks of torch's default process group, by FSDP2.

Each rank keeps its part of every block's weights, and gathers a block's from all while it computes
that block, forward and backward. So all ranks have to run the model equally often
(`TorchLearner._passes`). Members, and the bank's hooks, are as they are on a whole base.
"""

from typing import Any

import torch
import torch.distributed
from torch import nn

from azr_population.errors import UserError


def shard_base(model: nn.Module, device: str) -> None:
    """Shares out a causal LM that may lie on the CPU; the parts go to `device`.

    Blocks are moved one by one, so that a GPU never holds the whole base.

    Raises UserError: the model does not say what its blocks are.
    """
    # Imported late: torch.distributed has no FSDP where torch was built without it.
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    names = set(getattr(model, "_no_split_modules", None) or ())
    blocks = [module for module in model.modules() if type(module).__name__ in names]
    if not blocks:
        raise UserError(
            f"{type(model).__name__} does not name its blocks, so it cannot be shared out over "
            "workers; set shard=false"
        )
    mesh = init_device_mesh(torch.device(device).type, (ranks(),))
    # Before it is shared out: FSDP would gather gradients of what asks for them.
    model.requires_grad_(False)
    for module in (*blocks, model):
        fully_shard(module, mesh=mesh)


def give_back(model: nn.Module) -> None:
    """Frees what the last pass gathered: FSDP keeps the ends (embeddings and head) for a next one.

    Nothing happens to a base that is whole.
    """
    if is_shared_out(model):
        shared_out: Any = model
        shared_out.reshard()


def is_shared_out(model: nn.Module) -> bool:
    """Whether `shard_base` has been here."""
    return hasattr(model, "reshard")


def ranks() -> int:
    """Of torch's default process group; 1 where there is none."""
    ready = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if ready else 1
