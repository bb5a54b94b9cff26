"""The torch engine on one rank of several: the base on each, members identical on all.

Rows are split over ranks, the gradients of a member's factors are summed, and every rank makes the
same optimizer step, so nothing but gradients of adapters travels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.distributed
from torch import nn

from azr_population.engines.engine import Sample
from azr_population.engines.torch_engine import TorchEngine


class DataParallelEngine(TorchEngine):
    """`TorchEngine` whose updates sum over the ranks of torch's default process group.

    Every rank has to call `update` with the same members in the same order, and with no samples
    where it has none. With one rank it computes what `TorchEngine` computes.
    """

    checkpointing = False

    def use_gradient_checkpointing(self) -> None:
        """Runs the layers again during backward instead of keeping their activations."""
        model: Any = self.model
        model.gradient_checkpointing_enable({"use_reentrant": False})
        self.checkpointing = True

    def update(
        self, samples: Mapping[int, Sequence[Sample]], learning_rates: Mapping[int, float]
    ) -> dict[int, dict[str, float]]:
        """See `TorchEngine`; `tokens` and means are those of all ranks."""
        # Transformers checkpoint in training mode only; causal LMs have no dropout to switch on.
        self.model.train(self.checkpointing)
        try:
            return super().update(samples, learning_rates)
        finally:
            self.model.eval()

    def state_dict(self) -> dict[str, Any]:
        """See `Engine`; on the CPU, because a GPU need not have room for a second bank."""
        return {
            "adapters": {
                slot: {
                    name: (pair.A.cpu(), pair.B.cpu())
                    for name, pair in self.bank.read(slot).factors.items()
                }
                for slot in self._optimizers
            },
            "optimizers": {
                slot: _copied(optimizer.state_dict())
                for slot, optimizer in self._optimizers.items()
            },
        }

    def share_member(self, member: int) -> None:
        """Sends the first rank's factors of a member to all others."""
        if _ranks() > 1:
            for parameter in self.bank.parameters_of(member):
                torch.distributed.broadcast(parameter.data, src=0)

    def digest(self) -> str:
        """SHA-256 over all members' factors on this rank."""
        total = hashlib.sha256()
        for slot in range(self.bank.slots):
            for parameter in self.bank.parameters_of(slot):
                total.update(parameter.detach().cpu().numpy().tobytes())
        return total.hexdigest()

    def _sum_over_ranks(self, values: list[float]) -> list[float]:
        if _ranks() == 1:
            return values
        device = self.bank.parameters_of(0)[0].device
        # float64, in which token counts stay exact.
        total = torch.tensor(values, dtype=torch.float64, device=device)
        torch.distributed.all_reduce(total)
        return [float(value) for value in total]

    def _sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        if _ranks() == 1:
            return
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])
        torch.distributed.all_reduce(flat)
        start = 0
        for parameter in parameters:
            part = flat[start : start + parameter.numel()]
            parameter.grad = part.view_as(parameter)
            start += parameter.numel()


def _copied(state: Any) -> Any:
    """An optimizer's state with copies of its tensors on the CPU."""
    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", copy=True)
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    if isinstance(state, list):
        return [_copied(value) for value in state]
    return state


def _ranks() -> int:
    ready = torch.distributed.is_available() and torch.distributed.is_initialized()
    return torch.distributed.get_world_size() if ready else 1
